r"""The form of an answer, declared once.

The rules in a prompt, a demonstration's answer, the grammar, the JSON schema and the test of an answer's form all
follow from one value.

>>> form = Form(Line("Explanation", "one short sentence"), number(Scale(1, 5)))
>>> print(form.shown())
Explanation: <one short sentence>
Score: <number>
>>> form.written("It reads well.", "4")
'Explanation: It reads well.\nScore: 4'
>>> form.fits("Explanation: It reads well.\nScore: 4")
True
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judgesmith.programs.models.transport import Choice, quoted
from judgesmith.signatures.values import Scale

#: GBNF for one sentence: small models run on and on where a line is all that ends an explanation.
SENTENCE = r'[A-Z"“‘(] ([^.!?\n] | "." [0-9]){10,200} [.!?]'
#: GBNF for words of the output, or the word that says that some are missing.
PLACE = r'"omission" | "\"" [^"\n]{2,160} "\""'
TEXT: Mapping[str, Any] = {"type": "string"}


@dataclass(frozen=True, slots=True)
class Line:
    """`Label: value`, on one line; without a label the value alone."""

    label: str
    wanted: str
    """What the rules say of the value, between angle brackets."""
    grammar: str = "sentence"
    """GBNF of the value; `sentence` and `place` are known."""
    schema: Mapping[str, Any] = field(default_factory=lambda: TEXT)

    @property
    def lead(self) -> str:
        """Return the label with its colon; "" without one."""
        return f"{self.label}: " if self.label else ""

    @property
    def pattern(self) -> str:
        """Return a regular expression for a value."""
        if "enum" in self.schema:
            return f"(?:{'|'.join(re.escape(str(value)) for value in self.schema['enum'])})"
        return r"\d{1,3}" if self.schema["type"] == "integer" else r"[^\n]+"

    @property
    def values(self) -> tuple[str, ...]:
        """Return the only values that there are; none for free text."""
        whole = range(101) if self.schema["type"] == "integer" else ()
        return tuple(map(str, self.schema.get("enum", whole)))


def number(scale: Scale, label: str = "Score", wanted: str = "number") -> Line:
    """Return a line with a whole number of a scale, of digits or up to 100."""
    low = int(scale.low)
    high = int(scale.high)
    if high == 100:
        return Line(label, wanted, '("100" | [0-9] [0-9]?)', {"type": "integer"})
    return Line(
        label,
        wanted,
        f"[{low}-{high}]",
        {"type": "integer", "enum": list(range(low, high + 1))},
    )


def choice(label: str, words: Sequence[str], wanted: str = "") -> Line:
    """Return a line with one of several words."""
    return Line(
        label,
        wanted,
        f"({' | '.join(map(quoted, words))})",
        {"type": "string", "enum": [*words]},
    )


@dataclass(frozen=True, slots=True)
class Blocks:
    """Numbered blocks of lines ("Error 1", "Error 2" …), or one line in place of all."""

    name: str
    lines: tuple[Line, ...]
    most: int
    """Blocks that a grammar allows."""
    nothing: str = ""
    """The line in place of all blocks; empty where there must be one."""
    key: str = "errors"
    """The name of their list in JSON."""


class Form:
    """The parts of an answer, from its beginning to its end."""

    def __init__(self, *parts: Line | Blocks) -> None:
        self.parts = parts
        self._patterns: dict[str, re.Pattern[str]] = {}

    def shown(self) -> str:
        """Return the form as a prompt shows it, with descriptions of values in angle brackets."""
        text = ""
        for part in self.parts:
            if isinstance(part, Line):
                text += f"{part.lead}<{part.wanted}>\n"
                continue
            text += f"{part.name} 1\n" + "".join(
                f"{line.lead}<{line.wanted}>\n" for line in part.lines
            )
            if part.nothing:
                again = f"further {part.name.lower()}s in the same way, or the line {part.nothing} in place of all"
                text += f"({again})\n"
            text += "\n"
        return text.rstrip("\n")

    def count(self) -> str:
        """Return the number of lines of an answer, in words."""
        return "one line" if len(self.parts) == 1 else f"{len(self.parts)} lines"

    def named(self) -> str:
        """Return a request for every line of an answer, in their order."""
        names = []
        for part in self.parts:
            if isinstance(part, Line):
                names.append(part.label)
            else:
                names.append(
                    f"{part.name}s or {part.nothing}"
                    if part.nothing
                    else f"{part.name}s"
                )
        every = "both lines" if len(names) == 2 else "all of this"
        return f"Give {every}: {', then '.join(names)}."

    def written(self, *values: str) -> str:
        """Return an answer.

        Args:
            *values: The value of each part; blocks as they stand.
        """
        leads = [
            (part.lead, "\n") if isinstance(part, Line) else ("", "\n\n")
            for part in self.parts
        ]
        return "".join(
            f"{lead}{value}{end}"
            for (lead, end), value in zip(leads, values, strict=True)
        ).rstrip("\n")

    def grammar(self) -> str:
        """GBNF that holds a model to the form."""
        root: list[str] = []
        more: dict[str, str] = {}
        for part in self.parts:
            end = r'"\n"'
            if isinstance(part, Line):
                lead = quoted(
                    part.lead.replace("\n", " ")
                )  # an answer's line is one line
                root += [f"{lead} {part.grammar}" if part.label else part.grammar, end]
                continue
            name = part.name.lower()
            end = r'"\n\n"'
            several = rf'{name} ("\n\n" {name}){{0,{part.most - 1}}}'
            root += [
                f"({quoted(part.nothing)} | {several})" if part.nothing else several,
                end,
            ]
            lines = (
                f"{quoted(chr(10) + line.lead)} {line.grammar}" for line in part.lines
            )
            more[name] = f'"{part.name} " [1-9] ' + " ".join(lines)
        rules = {"root": " ".join(root[:-1]), **more}
        for name, rule in (("sentence", SENTENCE), ("place", PLACE)):
            if any(
                re.search(rf"\b{name}\b", re.sub(r'"(?:[^"\\]|\\.)*"', "", made))
                for made in rules.values()
            ):
                rules[name] = rule
        return "\n".join(f"{name} ::= {rule}" for name, rule in rules.items())

    def choices(self) -> tuple[Choice, ...]:
        """Return the answer's parts if each is one of few texts; none if a part is free text.

        >>> Form(number(Scale(1, 5))).choices()
        (('Score: ', ('1', '2', '3', '4', '5')),)
        """
        lines = [part for part in self.parts if isinstance(part, Line) and part.values]
        if len(lines) < len(self.parts):
            return ()
        leads = [line.lead.replace("\n", " ") for line in lines]
        ends = ["", *["\n"] * (len(lines) - 1)]
        return tuple(
            (end + lead, line.values)
            for end, lead, line in zip(ends, leads, lines, strict=True)
        )

    def schema(self) -> dict[str, Any]:
        """Return the schema of the same answer as a JSON object, by the labels in lower case."""
        fields: dict[str, Any] = {}
        for part in self.parts:
            if isinstance(part, Line):
                fields[part.label.lower()] = part.schema
            else:
                entry = _object(
                    {line.label.lower(): line.schema for line in part.lines}
                )
                fields[part.key] = {"type": "array", "items": entry}
        return _object(fields)

    def fits(self, text: str, *, between: str = r"\n+") -> bool:
        """Return True if an answer of lines has the form to the letter.

        Args:
            text: The answer.
            between: The separator of lines, as a pattern.
        """
        if between not in self._patterns:
            lines = [
                f"{re.escape(part.lead)}{part.pattern}"
                for part in self.parts
                if isinstance(part, Line)
            ]
            self._patterns[between] = re.compile(between.join(lines))
        return self._patterns[between].fullmatch(text.strip()) is not None


def _object(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }
