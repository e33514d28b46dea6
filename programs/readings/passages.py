"""What a model reads of a row: a prompt in pieces, one of which may be the text whose tokens are measured.

A piece keeps the model's own marks (`<|im_start|>`) apart from what people wrote: only a mark may become a control
token, so that a text which spells one is read as plain characters. Pieces are tokenised one by one, which makes the
beginning of two passages the same tokens wherever it is the same text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ...errors import OptionError

__all__ = ["Chat", "Message", "Passage", "Piece", "Question", "rendered"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a prompt. mark: written by the chat template, and may hold control tokens."""

    text: str
    mark: bool = False


@dataclass(frozen=True, slots=True)
class Passage:
    """Pieces in their order, and the index of the one that is measured (the target).

    Raises: OptionError if there is no such piece, or if it holds no text.
    """

    pieces: tuple[Piece, ...]
    target: int

    def __post_init__(self) -> None:
        if not 0 <= self.target < len(self.pieces):
            raise OptionError(f"target={self.target}: a passage of {len(self.pieces)} pieces has no such piece")
        if not self.pieces[self.target].text.strip():
            raise OptionError("the text to be measured is empty; leave the row out")


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt, and the one-token answers whose log-probabilities are wanted after it, each with its spellings.

    Raises: OptionError with fewer than two answers.
    """

    pieces: tuple[Piece, ...]
    answers: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if len(self.answers) < 2:
            raise OptionError(f"a question needs at least two answers to choose from; got {len(self.answers)}")


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat. Its content comes in parts, so that a part can be measured on its own."""

    role: str
    parts: tuple[str, ...]


class Chat(Protocol):
    """A model's chat template, as text: what stands around the messages' contents."""

    def __call__(self, messages: Sequence[tuple[str, str]], *, answer: bool) -> str:
        """The prompt of (role, content) pairs. answer: with the opening of the assistant's next turn at its end."""
        ...


def rendered(chat: Chat, messages: Sequence[Message], *, answer: bool = True) -> tuple[Piece, ...]:
    """Messages as pieces: the template's marks between the parts of the contents.

    A model whose template refuses a system message gets its text at the top of the first message of the user.

    Raises: OptionError for a template that changes or drops contents.
    """
    slots = [[f"[[{turn}.{part}]]" for part in range(len(message.parts))] for turn, message in enumerate(messages)]
    pairs = [(message.role, "".join(names)) for message, names in zip(messages, slots, strict=True)]
    try:
        text = chat(pairs, answer=answer)
    except ValueError:
        if len(messages) < 2 or messages[0].role != "system":
            raise
        first, second, *rest = messages
        joined = Message(second.role, (*first.parts, "\n\n", *second.parts))
        return rendered(chat, [joined, *rest], answer=answer)
    pieces: list[Piece] = []
    for message, names in zip(messages, slots, strict=True):
        for part, name in zip(message.parts, names, strict=True):
            mark, found, text = text.partition(name)
            if not found:
                raise OptionError(f"this model's chat template leaves out what the {message.role} says")
            pieces += [Piece(mark, mark=True)] if mark else []
            pieces.append(Piece(part))
    return (*pieces, Piece(text, mark=True)) if text else tuple(pieces)
