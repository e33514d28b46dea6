"""The trajectory of an agent as a value and as text.

A turn begins at the beginning of a line, and further lines of what was said are indented, so that no text can pass for
another turn, a call or a result. The text can be read back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, assert_never

#: Speakers by what logs call them.
SPEAKERS = {
    "human": "User",
    "user": "User",
    "customer": "User",
    "assistant": "Assistant",
    "ai": "Assistant",
    "gpt": "Assistant",
    "bot": "Assistant",
    "model": "Assistant",
    "chatbot": "Assistant",
    "agent": "Assistant",
    "system": "System",
    "developer": "System",
    "tool": "Tool",
    "function": "Tool",
}
#: What stands at the beginning of a turn that is judged instead of the whole, for models and people to read.
MARK = " (only this turn is judged)"
#: How a turn begins: "User", "Assistant Ann", "Assistant calls get_weather (2)", "Tool get_weather (error)".
_HEAD = re.compile(
    rf"(?P<speaker>{'|'.join(dict.fromkeys(SPEAKERS.values()))})(?: (?P<rest>(?:[^\n:]|:(?=\S)){{1,90}}?))??"
    rf"(?P<mark>{re.escape(MARK)})?:(?: |$)"
)
_TOOL = re.compile(
    r"(?P<calls>calls )?(?P<name>(?!\(error\)$)\S+)?(?: \((?P<number>\d+)\))?(?: ?(?P<error>\(error\)))?"
)
#: A result that says itself that it is an error.
_ERROR = re.compile(
    r"[\s{\[\"'(]*(?:\w*error\b|\w*exception\b|traceback)", re.IGNORECASE
)
#: Characters of a result or of arguments that are shown, of a whole trajectory, and of a result where that is longer.
LONGEST = 2000
BUDGET = 10_000
SHORTEST = 200
#: What stands for what is not shown.
GONE = "characters left out …]"


@dataclass(frozen=True, slots=True)
class Turn:
    """Words of a speaker, the call of a tool, or its result.

    text: the words, the arguments (mostly JSON), or the tool's result. name: the speaker's own, or the tool's. number:
    which of several calls at once, "" for one alone. error: the result is marked as an error. judged: only this turn of
    its trajectory is judged.
    """

    kind: Literal["speech", "call", "result"]
    speaker: str
    text: str
    name: str = ""
    number: str = ""
    error: bool = False
    judged: bool = False

    @property
    def head(self) -> str:
        """The line above the turn's text."""
        called = "calls " if self.kind == "call" else ""
        number = f" ({self.number})" if self.number else ""
        return (
            f"{self.speaker} {called}{self.name}".rstrip()
            + number
            + " (error)" * self.error
            + MARK * self.judged
        )

    def __str__(self) -> str:
        return f"{self.head}: {indented(self.text)}"

    def within(self, most: int) -> Turn:
        """Return the turn with arguments or a result of about `most` characters; words are never cut."""
        if self.kind == "speech":
            return self
        return replace(self, text=cut(self.text, most))


@dataclass(frozen=True, slots=True)
class Trajectory:
    """An agent's turns in their order."""

    turns: tuple[Turn, ...] = ()

    @classmethod
    def read(cls, text: str) -> Trajectory:
        """Return the trajectory of its own text; without turns for a text that is not only turns."""
        turns: list[Turn] = []
        lines: list[list[str]] = []  # of each turn, put together once
        for line in text.splitlines():
            if match := _HEAD.match(line):
                turn = _headed(
                    match["speaker"], match["rest"] or "", line[match.end() :]
                )
                turns.append(replace(turn, judged=bool(match["mark"])))
                lines.append([turn.text])
            elif turns and (line.startswith("  ") or not line.strip()):
                lines[-1].append(line[2:])
            else:
                return cls()
        # Empty lines at a turn's end are not shown, so that a text that was read gives itself again.
        whole = ("\n".join(words).rstrip("\n") for words in lines)
        return cls(
            tuple(
                replace(turn, text=words)
                for turn, words in zip(turns, whole, strict=True)
            )
        )

    def text(self, budget: int = BUDGET) -> str:
        """Return the text for prompts and pages.

        Arguments and results are cut in the middle: those of more than `LONGEST` characters, and shorter ones if all of
        it has more than `budget`.
        """
        most = LONGEST
        while (
            most > SHORTEST
            and sum(len(turn.within(most).text) for turn in self.turns) > budget
        ):
            most = max(SHORTEST, most // 2)
        return "\n".join(str(turn.within(most)) for turn in self.turns)

    @property
    def calls(self) -> tuple[Turn, ...]:
        """The calls of tools."""
        return tuple(turn for turn in self.turns if turn.kind == "call")

    @property
    def results(self) -> tuple[Turn, ...]:
        """The results of tools."""
        return tuple(turn for turn in self.turns if turn.kind == "result")

    @property
    def errors(self) -> tuple[Turn, ...]:
        """Results that are marked as errors, or begin as errors do."""
        return tuple(
            turn for turn in self.results if turn.error or _ERROR.match(turn.text)
        )

    @property
    def answers(self) -> dict[int, int]:
        """The place of a call, from 0, and that of its result, which has the call's name and number."""
        answers = dict[int, int]()
        waiting = dict[tuple[str, str], int]()
        for place, turn in enumerate(self.turns):
            match turn.kind:
                case "call":
                    waiting[turn.name, turn.number] = place
                case "result":
                    call = waiting.pop((turn.name, turn.number), None)
                    if call is not None:
                        answers[call] = place
                case "speech":
                    pass
                case _:
                    assert_never(turn.kind)
        return answers

    @property
    def final(self) -> str:
        """The assistant's last words; "" where it ends with a call."""
        last = next(
            (turn for turn in reversed(self.turns) if turn.speaker == "Assistant"), None
        )
        return last.text if last is not None and last.kind == "speech" else ""

    @property
    def judged(self) -> int | None:
        """The place of the turn that is judged instead of the whole, from 0."""
        return next(
            (place for place, turn in enumerate(self.turns) if turn.judged), None
        )

    def sides(self) -> tuple[str, str] | None:
        """Return (the assistant's input, its words and calls), or (turns before the judged one, that turn).

        None if the assistant said or was given nothing.
        """
        place = self.judged
        if place is None:
            before = [turn for turn in self.turns if turn.speaker != "Assistant"]
            own = [turn for turn in self.turns if turn.speaker == "Assistant"]
        else:
            before = list(self.turns[:place])
            own = [self.turns[place]]
        sides = []
        for turn in own:
            spoken = turn.kind == "speech"
            sides.append(turn.text if spoken else str(replace(turn, judged=False)))
        complete = (before or place is not None) and any(map(str.strip, sides))
        return ("\n".join(map(str, before)), "\n".join(sides)) if complete else None


def marked(text: str, number: str) -> str:
    """Return a trajectory's text with a mark at the turn to judge.

    number: of the turn, from 1; words, a call and a result are a turn each.

    Raises:
        ValueError: If that is no turn of the assistant.
    """
    text = unmarked(text)
    own = {
        str(n): place
        for n, (*place, turn) in enumerate(starts(text), 1)
        if turn.speaker == "Assistant"
    }
    if not own:
        raise ValueError(
            f"{number[:20]} is given, but the output has no turn of the assistant; leave it empty"
        )
    if number not in own:
        choices = [*own][:20]
        if len(own) > 20:
            choices.append("…")
        raise ValueError(
            f"{number[:20]} is no turn of the assistant; its turns are {', '.join(choices)} (a call is one, too)"
        )
    colon = text.rindex(":", *own[number])
    return text[:colon] + MARK + text[colon:]


def judged_in(text: str) -> str:
    """Return the words of the turn that is judged; the text itself where none is marked."""
    run = Trajectory.read(text)
    return text if run.judged is None else run.turns[run.judged].text


def unmarked(text: str) -> str:
    """Return the text without any mark of a judged turn: the same for all rows that share a trajectory."""
    return text.replace(MARK, "")


def starts(text: str) -> list[tuple[int, int, Turn]]:
    """Return the start of each turn of a trajectory's text, and of its words; [] for any other text."""
    turns = Trajectory.read(text).turns
    places = [match.span() for match in re.finditer(f"(?m)^{_HEAD.pattern}", text)]
    if len(places) == len(turns):
        return [(*place, turn) for place, turn in zip(places, turns, strict=True)]
    return []


def cut(text: str, most: int) -> str:
    """Cut a text to about `most` characters, with a note in the middle of how many were left out."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} [… {len(text) - 2 * half:,} {GONE} {text[-half:]}"


def shown_share(text: str) -> float:
    """Return the share of a trajectory that its text shows, by the notes of `cut` in it; 1 of any other text."""
    if GONE not in text or not Trajectory.read(text).turns:
        return 1.0
    gone = sum(
        int(count.replace(",", ""))
        for count in re.findall(rf"\[… ([\d,]{{1,12}}) {GONE}", text)
    )
    return len(text) / (len(text) + gone)


def indented(text: str) -> str:
    """Return a text with further lines indented."""
    return "\n  ".join(text.splitlines())


def _headed(speaker: str, rest: str, text: str) -> Turn:
    """Return a turn by its beginning."""
    tool = _TOOL.fullmatch(rest)
    if tool and (tool["calls"] or speaker == "Tool"):
        kind: Literal["call", "result"] = "call" if tool["calls"] else "result"
        return Turn(
            kind,
            speaker,
            text,
            tool["name"] or "",
            tool["number"] or "",
            bool(tool["error"]),
        )
    return Turn("speech", speaker, text, rest)
