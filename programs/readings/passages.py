"""Passages for a model to read: prompts in pieces, one of which may be the text whose tokens are measured.

A piece keeps the model's own marks (`<|im_start|>`) apart from what people wrote: only a mark may become a control
token, so that a text which spells one is read as plain characters. Pieces are tokenised one by one, which makes the
beginning of two passages the same tokens wherever it is the same text.

A row is put before the model as a conversation: the task's instruction, the context and the source are the user's turn,
the output is the assistant's.

Source: GPTScore (Fu et al. 2023), BARTScore (Yuan et al. 2021); the wording is ours.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from judgesmith.errors import ModelError, OptionError
from judgesmith.trajectories.value import Trajectory


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a prompt. mark: written by the chat template, and may hold control tokens."""

    text: str
    mark: bool = False


@dataclass(frozen=True, slots=True)
class Passage:
    """Pieces in their order, and the index of the one that is measured (the target).

    Raises: OptionError if that holds no text.
    """

    pieces: tuple[Piece, ...]
    target: int

    def __post_init__(self) -> None:
        if not self.pieces[self.target].text.strip():
            raise OptionError("the text to be measured is empty; leave the row out")


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat. Its content comes in parts, so that a part can be measured on its own."""

    role: str
    parts: tuple[str, ...]


class Chat(Protocol):
    """A model's chat template: the text around the messages' contents."""

    def __call__(self, messages: Sequence[tuple[str, str]], *, answer: bool) -> str:
        """Return the prompt of (role, content) pairs.

        Args:
            messages: The pairs.
            answer: True to end with the opening of the assistant's next turn.
        """
        ...


def rendered(
    chat: Chat, messages: Sequence[Message], *, answer: bool = True
) -> tuple[Piece, ...]:
    """Messages as pieces: the template's marks between the parts of the contents.

    A model whose template refuses a system message gets its text at the top of the first message of the user.

    Raises: OptionError for a template that changes or drops contents.
    """
    contents = list(map(_named, itertools.count(), messages))
    pairs = [
        (message.role, "".join(names))
        for message, names in zip(messages, contents, strict=True)
    ]
    try:
        text = chat(pairs, answer=answer)
    except ValueError:
        if len(messages) < 2 or messages[0].role != "system":
            raise
        first, second, *rest = messages
        joined = Message(second.role, (*first.parts, "\n\n", *second.parts))
        return rendered(chat, [joined, *rest], answer=answer)
    pieces: list[Piece] = []
    for message, names in zip(messages, contents, strict=True):
        for part, name in zip(message.parts, names, strict=True):
            mark, separator, text = text.partition(name)
            if not separator:
                raise OptionError(
                    f"this model's chat template leaves out what the {message.role} says"
                )
            pieces += [Piece(mark, mark=True)] if mark else []
            pieces.append(Piece(part))
    return (*pieces, Piece(text, mark=True)) if text else tuple(pieces)


def _named(turn: int, message: Message) -> list[str]:
    """A name for each part of a message, which stands in its place in the template."""
    return [f"[[{turn}.{part}]]" for part in range(len(message.parts))]


# A model's chat template ---------------------------------------------------------------------------------------------

#: For models without a template of their own.
PLAIN_TURNS = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


class JinjaChat:
    """A chat template in Jinja, as GGUF files and tokenizers carry it.

    It comes with the model and is not trusted: it runs in a sandbox, where it reaches nothing but the messages.

    Raises: ModelError if the template is no Jinja.
    """

    def __init__(self, template: str, *, bos: str = "", eos: str = "") -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = lambda form: (
            ""
        )  # a date in the prompt would change the readings daily
        try:
            self._template = environment.from_string(template)
        except jinja2.TemplateError as error:
            raise ModelError(
                f"the model's chat template cannot be read: {error}"
            ) from error
        self._marks = {"bos_token": bos, "eos_token": eos}

    def __call__(self, messages: Sequence[tuple[str, str]], *, answer: bool) -> str:
        """See `Chat`. Raises: ValueError where the template refuses the messages, for example a system's."""
        turns: list[dict[str, Any]] = [
            {"role": role, "content": content} for role, content in messages
        ]
        try:
            return self._template.render(
                messages=turns, add_generation_prompt=answer, **self._marks
            )
        except jinja2.TemplateError as error:
            raise ValueError(str(error)) from error


def _refuse(message: str) -> str:
    raise jinja2.TemplateError(message)


# Rows ----------------------------------------------------------------------------------------------------------------

#: What the systems of a task were asked to do, for rows that come without an instruction of their own.
INSTRUCTIONS = {
    "summarization": "Summarize the article.",
    "simplification": "Rewrite the sentence in simpler English, keeping its meaning.",
    "data-to-text": "Put this into one sentence of natural English.",
    "dialogue": "Continue the conversation with an interesting, natural reply.",
    "story": "Write a short story that begins with this.",
    "question-answering": "Answer the question.",
    "translation": "Translate this text.",
    "agent": "Do what the user asks for, with the tools that there are.",
    "general": "Do what this asks for.",
}

ASSISTANT_SYSTEM = "You are a helpful assistant."


@dataclass(frozen=True, slots=True)
class Text:
    """A row as it is read. instruction: what the system was asked to do; see `INSTRUCTIONS`.

    Of a trajectory what the assistant said and called is the output, and what users and tools said is the material;
    where one turn is judged, this turn and what came before it. Nothing is cut: what a model cannot hold at once is
    read in windows (`windows`).
    """

    source: str
    output: str
    context: str = ""
    instruction: str = INSTRUCTIONS["general"]
    reference: str = ""

    @property
    def material(self) -> str:
        """Return the material that the output was made from: context and source."""
        sides = Trajectory.read(self.output).sides()
        return "\n\n".join(
            part
            for part in (self.context, self.source, sides[0] if sides else "")
            if part
        )

    @property
    def judged(self) -> str:
        """Return the output."""
        sides = Trajectory.read(self.output).sides()
        return sides[1] if sides else self.output


def passage(text: Text, chat: Chat) -> Passage:
    """Return the row up to the end of its output: text after it cannot change its tokens' probabilities.

    Raises:
        OptionError: For an empty output.
    """
    return framed(chat, text.instruction, text.material, text.judged)


def framed(
    chat: Chat, instruction: str, material: str, output: str, *, before: str = ""
) -> Passage:
    """Return a passage whose target is the output.

    Args:
        chat: The chat template.
        instruction: The task's instruction.
        material: Context and source.
        output: The target.
        before: The part of the output before it.

    Raises:
        OptionError: For an empty output.
    """
    user_turn = f"{instruction}\n\n{material}" if material else instruction
    own = (before, output) if before else (output,)
    turns = [
        Message("system", (ASSISTANT_SYSTEM,)),
        Message("user", (user_turn,)),
        Message("assistant", own),
    ]
    pieces = rendered(chat, turns, answer=False)
    last = max(
        i for i, piece in enumerate(pieces) if not piece.mark and piece.text == output
    )
    return Passage(pieces[: last + 1], last)
