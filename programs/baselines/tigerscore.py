"""TIGERScore's form: errors with place, aspect, explanation and penalty, whose sum is the score.

TIGERScore is a model that was trained to answer so. Here the form is asked of the judge's own model, in a prompt of
ours.

Source: "TIGERScore: Towards Building Explainable Metric for All Text Generation Tasks" (Jiang et al. 2023, §2).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import dspy

from ...signatures.judging import PenaliseErrors
from ...signatures.values import Details, Item, Verdict
from ..models.lm import LanguageModel
from ..models.transport import Reply
from ..openlgauge.grounding import ground_errors
from ..openlgauge.reading import FoundError
from ..prompting.forms import Blocks, Form, Line
from ..prompting.layouts import Layout, Read
from ..prompting.predict import Answer, JudgePredict
from ..registry import judges
from .critique import CritiqueJudge

MOST = 8  # errors that count, the first ones
LOWEST, HIGHEST = 0.5, 5.0  # a penalty

_FIELD = re.compile(
    r"^[ \t*_#>-]*+(?P<name>location|aspect|explanation|penalty|score reduction)[ \t*_]*+(?:\d+[ \t*_]*+)?:"
    r"(?P<value>.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBER = re.compile(r"[-−]?\s*(\d+(?:\.\d+)?)")
_NOTHING = re.compile(r"^[\s*_#>\"'-]*no\s+errors?\b", re.IGNORECASE | re.MULTILINE)
_OMISSION = re.compile(r"[\s\"'*_(<\[]*(?:omission|missing)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Penalties(Details):
    """The points that each error takes off, 0.5 to 5, and its aspect, in the order of the verdict's errors. The paper's
    score is minus their sum."""

    penalties: tuple[float, ...]
    aspects: tuple[str, ...]


class PenaltyLayout(Layout):
    """Errors in lines of Location, Aspect, Explanation and Penalty, or No Error."""

    def form(self, inputs: Mapping[str, Any]) -> Form:
        return Form(
            Blocks(
                "Error",
                (
                    Line("Location", "the words, copied from the output, or omission if something is missing", "place"),
                    Line("Aspect", "in what respect they are wrong, in one to three words", "[A-Za-z -]{3,40}"),
                    Line("Explanation", "one short sentence: what is wrong, and how it should be"),
                    Line(
                        "Penalty",
                        f"points from {LOWEST:g} (hardly matters) to {HIGHEST:g} (makes the output useless)",
                        '("0.5" | [1-4] ".5" | [1-5])',
                    ),
                ),
                4,
                "No Error",
            )
        )

    def rules(self, inputs: Mapping[str, Any]) -> str:
        what = inputs.get("aspect")
        of = f" of {what}" if what and what != "overall" else ""
        return (
            f"List the errors{of}, the worst first, at most {MOST}. Answer in this form, without any other text:\n"
            f"{self.form(inputs).shown()}"
        )

    def max_tokens(self, inputs: Mapping[str, Any]) -> int:
        return 900

    def read(self, reply: Reply, inputs: Mapping[str, Any]) -> Read:
        errors: list[dict[str, str]] = []
        for field in _FIELD.finditer(reply.text):
            name = field["name"].lower().replace("score reduction", "penalty")
            if name == "location" or not errors:
                errors.append({})
            errors[-1].setdefault(name, field["value"].strip().strip("*_ \t"))
        whole = [e for e in errors if e.get("location") and _points(e.get("penalty")) is not None]
        if not whole and (errors or not _NOTHING.search(reply.text)):
            cut = " (cut off at the token limit)" if reply.finish == "length" else ""
            return Read({}, problem=f"no error with a penalty, and no No Error, in the answer{cut}")
        notes = [f"{len(errors) - len(whole)} errors without a place or a penalty were left out"] * (
            len(errors) > len(whole)
        )
        if len(whole) > MOST:
            notes.append(f"{len(whole)} errors, the first {MOST} count")
        return Read({"errors": whole[:MOST]}, repaired=bool(notes), notes=tuple(notes))


def _points(text: str | None) -> float | None:
    """A penalty in its range, None where there is no number."""
    match = _NUMBER.search(text or "")
    return None if match is None else min(HIGHEST, max(LOWEST, float(match[1])))


@judges.register
class TigerScore(CritiqueJudge):
    """Errors and their penalties in one call. percent is 100 without errors and 0 at the highest sum, 8 times 5; the
    penalties are in `details`."""

    kind: ClassVar[str] = "tigerscore"
    about: ClassVar[str] = "errors with place, aspect, explanation and penalty, summed up (TIGERScore's form)"
    paper: ClassVar[str] = "TIGERScore: Towards Building Explainable Metric for All Text Generation Tasks (2023)"

    signature: ClassVar[type[dspy.Signature]] = PenaliseErrors

    def layout(self) -> Layout:
        return PenaltyLayout()

    def taught(self) -> list[JudgePredict]:
        return []  # a score does not say which errors took off how much

    async def ajudge(self, item: Item, lm: LanguageModel) -> Verdict:
        answer: Answer = await self.scorer.ask(lm, self._inputs(item))
        listed: list[dict[str, str]] = answer.read.values["errors"]
        points = tuple(_points(error["penalty"]) or 0.0 for error in listed)
        result = [
            FoundError(
                None if _OMISSION.match(error["location"]) else error["location"],
                ": ".join(filter(None, (error.get("aspect", ""), error.get("explanation", "")))),
                max(1.0, taken),
            )
            for error, taken in zip(listed, points, strict=True)
        ]
        return answer.verdict(
            100.0 * (1.0 - sum(points) / (MOST * HIGHEST)),
            errors=ground_errors(result, item.output),
            details=Penalties(points, tuple(error.get("aspect", "") for error in listed)),
        )
