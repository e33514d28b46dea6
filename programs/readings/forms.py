"""The forms in which a row is put before the model: which text is measured, and after what.

- assistant: the task's instruction, the context and the source are the user's turn, the output is the assistant's.
- tags: source and output stand in tags in the user's turn, as in a judge's prompt.
- plain: source, instruction and output as one running text.
- bare: the output alone, after the mark that begins a text.
- reverse: the source after the output (what of the source can be told from the output).

Source: GPTScore (Fu et al. 2023), BARTScore (Yuan et al. 2021); the wording is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import OptionError
from .passages import Chat, Message, Passage, Piece, Question, rendered

__all__ = ["FORMS", "INSTRUCTIONS", "Text", "about", "after_reply", "digit_question", "instruction", "passage"]

#: What the systems of a task were asked to do, for rows that come without an instruction of their own.
INSTRUCTIONS = {
    "summarization": "Summarize the article.",
    "simplification": "Rewrite the sentence in simpler English, keeping its meaning.",
    "data-to-text": "Put this into one sentence of natural English.",
    "dialogue": "Continue the conversation with an interesting, natural reply.",
    "story": "Write a short story that begins with this.",
    "question-answering": "Answer the question.",
    "translation": "Translate this text.",
    "general": "Do what this asks for.",
}

ASSISTANT_SYSTEM = "You are a helpful assistant."
JUDGE_SYSTEM = "You judge texts strictly and fairly."
DIGITS = tuple((str(digit),) for digit in range(1, 6))
LONGEST = 3000  # characters of a source or an output that are read; the rest is cut off


@dataclass(frozen=True, slots=True)
class Text:
    """A row as it is read. instruction: what the system was asked to do; see `INSTRUCTIONS`.

    Texts are cut after `LONGEST` characters, as the 4,096 tokens of a small model's context ask for.
    """

    source: str
    output: str
    context: str = ""
    instruction: str = INSTRUCTIONS["general"]

    @property
    def given(self) -> str:
        """What the output was made from: context and source, cut."""
        return "\n\n".join(part[:LONGEST] for part in (self.context, self.source) if part)

    @property
    def made(self) -> str:
        """The output, cut."""
        return self.output[:LONGEST]


def instruction(task: str) -> str:
    """The instruction of a task of the aspect library, or the general one."""
    return INSTRUCTIONS.get(task, INSTRUCTIONS["general"])


def passage(form: str, text: Text, chat: Chat) -> Passage:
    """The row in one of the `FORMS`. Raises: OptionError for an unknown form or an empty target."""
    try:
        build = FORMS[form]
    except KeyError:
        raise OptionError(f"there is no form {form!r} to read a row in; there are {', '.join(FORMS)}") from None
    return build(text, chat)


def after_reply(text: Text, chat: Chat, question: str, answers: tuple[tuple[str, ...], ...] = DIGITS) -> Question:
    """A question in the turn after the assistant's reply, so that it shares all tokens with the form `assistant`."""
    turns = [*_reply(text), Message("user", (question,))]
    return Question(rendered(chat, turns), answers)


def about(text: Text, chat: Chat, question: str, answers: tuple[tuple[str, ...], ...] = DIGITS) -> Question:
    """A question under source and output in tags, so that it shares all tokens with the form `tags`."""
    return Question(rendered(chat, _tagged(text, question)), answers)


def digit_question(aspect: str = "", definition: str = "", *, noun: str = "output") -> str:
    """'How good is the output in fluency? …', to be answered with a digit from 1 to 5."""
    said = f" in {aspect}" if aspect else ""
    means = f" ({definition.rstrip('.')})" if definition else ""
    return f"How good is the {noun}{said}{means}? Answer with one digit from 1 (worst) to 5 (best)."


def _reply(text: Text) -> list[Message]:
    asked = f"{text.instruction}\n\n{text.given}" if text.given else text.instruction
    return [Message("system", (ASSISTANT_SYSTEM,)), Message("user", (asked,)), Message("assistant", (text.made,))]


def _tagged(text: Text, question: str) -> list[Message]:
    context = f"<context>\n{text.context[:LONGEST]}\n</context>\n" if text.context else ""
    before = f"{context}<source>\n{text.source[:LONGEST]}\n</source>\n<output>\n"
    return [
        Message("system", (JUDGE_SYSTEM,)),
        Message("user", (before, text.made, f"\n</output>\n{question}")),
    ]


def _up_to(pieces: tuple[Piece, ...], target: str) -> Passage:
    """The passage that ends with the target: what stands after it cannot change its tokens' probabilities."""
    last = max(i for i, piece in enumerate(pieces) if not piece.mark and piece.text == target)
    return Passage(pieces[: last + 1], last)


def _assistant(text: Text, chat: Chat) -> Passage:
    return _up_to(rendered(chat, _reply(text), answer=False), text.made)


def _tags(text: Text, chat: Chat) -> Passage:
    return _up_to(rendered(chat, _tagged(text, "")), text.made)


def _plain(text: Text, chat: Chat) -> Passage:
    before = f"{text.given}\n\n{text.instruction}\n"
    return Passage((Piece(before), Piece(text.made)), 1)


def _bare(text: Text, chat: Chat) -> Passage:
    # The mark with which every turn begins, or a line break where the template begins with contents.
    first = rendered(chat, [Message("user", ("x",))])[0]
    start = first.text.split("user", 1)[0] if first.mark else "\n"
    return Passage((Piece(start or "\n", mark=True), Piece(text.made)), 1)


def _reverse(text: Text, chat: Chat) -> Passage:
    return Passage((Piece(text.made), Piece("\n\nThe same in other words:\n"), Piece(text.given)), 2)


FORMS: dict[str, Callable[[Text, Chat], Passage]] = {
    "assistant": _assistant,
    "tags": _tags,
    "plain": _plain,
    "bare": _bare,
    "reverse": _reverse,
}
