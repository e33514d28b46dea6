"""What people say of verdicts, in the tables that the papers print: OpeNLGauge's Table 4 (error spans and their
explanations) and Active-Critic's Table 3 (explanations of scores)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .agreement import Said
from .task import ALIGNMENT, DIFFERENTIABILITY, EXPLANATION_ANSWERS, QUALITIES, SPAN_ANSWERS, USEFULNESS, Unit

#: What Table 3 calls the explanation of the whole verdict.
OVERALL_ROW = "Overall quality"
Answers = Sequence[tuple[Unit, Mapping[str, Any]]]


def tables(answered: Said) -> dict[str, Any]:
    """Both tables for each judge, of all raters' first answers; a table about which nothing was said is absent."""
    by_judge: dict[str, list[tuple[Unit, Mapping[str, Any]]]] = {}
    for key, by in answered.first.items():
        unit = answered.units[key]
        given = by_judge.setdefault(unit.about.get("judge") or "judge", [])
        given += [(unit, one.answer) for one in by.values() if one.answer is not None]
    result: dict[str, Any] = {}
    for judge, answers in by_judge.items():
        errors = [one for one in answers if one[0].about["what"] == "error"]
        explained = [one for one in answers if one[0].about["what"] != "error"]
        result[judge] = ({"spans": spans_table(errors)} if errors else {}) | (
            {"explanations": explanations_table(explained)} if explained else {}
        )
    return result


def spans_table(answers: Answers) -> dict[str, Any]:
    """Counts by explanation and error span, and the shares that are right, in per cent. Source: OpeNLGauge, Table 4."""
    counts = Counter((answer["Explanation"], answer["Error span"]) for _, answer in answers)
    cells = {row: {column: counts[row, column] for column in SPAN_ANSWERS} for row in EXPLANATION_ANSWERS}
    total = len(answers)
    return {
        "counts": cells,
        "total": total,
        "span_ok": _percent(sum(row["Error"] for row in cells.values()), total),
        "explanation_correct": _percent(sum(cells["Correct"].values()), total),
    }


def explanations_table(answers: Answers) -> dict[str, Any]:
    """The share of yes in per cent, by aspect and quality, with the mean over aspects; alignment and differentiability
    in per cent, usefulness as a mean from 1 to 5. None where nobody was asked. Source: Active-Critic, Table 3."""
    by_aspect: dict[str, list[Mapping[str, Any]]] = {}
    for unit, answer in answers:
        name = OVERALL_ROW if unit.about["what"] == "overall" else unit.about["name"]
        by_aspect.setdefault(name, []).append(answer)
    rows = {name: {quality: _yes(given, quality) for quality in QUALITIES} for name, given in by_aspect.items()}
    average = {quality: _mean(row[quality] for row in rows.values()) for quality in QUALITIES}
    whole = by_aspect.get(OVERALL_ROW, [])
    return {
        "rows": rows,
        "average": average,
        "alignment": _yes(whole, ALIGNMENT),
        "differentiability": _yes(whole, DIFFERENTIABILITY),
        "overall": _mean(answer[USEFULNESS] for answer in whole),
        "ratings": len(answers),
    }


def _yes(given: Iterable[Mapping[str, Any]], question: str) -> float | None:
    asked = [answer[question] for answer in given if question in answer]
    return _percent(asked.count("Yes"), len(asked))


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 2) if whole else None


def _mean(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return round(math.fsum(present) / len(present), 3) if present else None
