"""Errors marked by a student: a short prompt without rules, errors as OpeNLGauge writes them, then a digit.

Source: OpeNLGauge (§5.2, Listing 3) for the short prompt; TRACT (Chiang et al. 2025) for an expected score that is read
after what the model wrote before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from judgesmith.disarming import disarm
from judgesmith.programs.answers.reading import Read
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.openlgauge.annotation import AnnotationLayout
from judgesmith.programs.openlgauge.reading import (
    MOST,
    Annotation,
    FoundError,
    annotation_form,
)
from judgesmith.programs.prompting.layouts import (
    DIGITS,
    SCORE_LINE,
    number_rule,
    whole,
)
from judgesmith.signatures.values import Scale

#: Tokens of an answer.
MOST_TOKENS = 100 * MOST


class MarkedLayout(AnnotationLayout):
    """Errors with place, explanation and severity, then `Score:` and a digit from 1 to 5.

    The score is the digit's expectation if the model gives log-probabilities. scale: of the number that a prompt asks
    for.
    """

    as_json = False  # a student writes the lines that it learnt

    def __init__(self, scale: Scale = DIGITS) -> None:
        super().__init__("expected", overall="integers", rules=False, forced_most=MOST)
        self.scale = scale

    def rules(self, inputs: Mapping[str, Any]) -> str:
        """Return the instructions for the form of the answer."""
        return (
            f"Mark the errors of the output that concern {inputs['focus'].aspect}, then score it. Answer in this form, "
            "without any other text:\n"
            "Error 1\n"
            "Location: <the words, copied from the output, or omission if something is missing>\n"
            "Explanation: <one short sentence on what is wrong>\n"
            "Severity: <a whole number from 1 to 5>\n"
            "(further errors in the same way, or the line No Error in place of all)\n\n"
            f"{SCORE_LINE}\nwhere {number_rule(self.scale)}."
        )

    def answer(self, demo: Mapping[str, Any], inputs: Mapping[str, Any]) -> str | None:
        """Return a demonstration's answer; None without marked errors."""
        errors = demo.get("annotation")
        return f"{disarm(errors)}\n\n{self.example(demo)}" if errors else None

    def example(self, demo: Mapping[str, Any]) -> str:
        """Return a demonstration's line with the score."""
        return f"Score: {whole(DIGITS.from_percent(demo['score']))}"

    def grammar(self, inputs: Mapping[str, Any]) -> str | None:
        """Return the grammar of the answer."""
        # Free within a line: the answers that a student learns are not in the form that plain models are held to.
        return (
            'root ::= errors "\\n\\nScore: " [1-5]\n'
            f'errors ::= "No Error" | error ("\\n\\n" error){{0,{self.forced_most - 1}}}\n'
            'error ::= "Error " [1-9] "\\nLocation: " line "\\nExplanation: " line "\\nSeverity: " [1-5]\n'
            "line ::= [^\\n]{2,240}"
        )

    def extract(self, reply: Reply, inputs: Mapping[str, Any]) -> Read:
        """Return errors and score of an answer."""
        parsed = super().extract(reply, inputs)
        if parsed.problem:
            return parsed
        return replace(
            parsed, values=parsed.values | {"score": parsed.values["percent"]}
        )

    def max_tokens(self, inputs: Mapping[str, Any]) -> int:
        """Return the bound on an answer's tokens."""
        return MOST_TOKENS


def error_text(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return the worst eight errors of a verdict's JSON in the form of answers; "No Error" without any.

    Each part stands on one line, and nothing in it can speak a chat template's tokens.
    """
    places = sorted(
        range(len(errors)), key=lambda place: -(errors[place].get("severity") or 0.0)
    )[:MOST]
    worst = [_found_error(errors[place]) for place in sorted(places)]
    return annotation_form(Annotation(errors=tuple(worst)))


def _found_error(error: Mapping[str, Any]) -> FoundError:
    omission = error.get("how") == "omission"
    severity = math.floor((error.get("severity") or 3.0) + 0.5)
    return FoundError(
        None if omission else _line(error.get("text")),
        _line(error.get("explanation")),
        min(5.0, max(1.0, severity)),
    )


def _line(text: Any) -> str:
    return disarm(" ".join(str(text or "").split()))[:240]
