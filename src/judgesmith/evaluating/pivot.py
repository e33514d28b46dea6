"""The agreement in one sentence and in tables of judges against aspects, with the best marked.

With one aspect, judges stand against coefficients. Terminal and page show the same tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..agreement.meta.agreement import SYSTEM_MEANS
from ..agreement.meta.evaluation import MetaEvaluation, rows_of
from ..agreement.meta.inputs import AVERAGE, DECIDED
from ..tables import Cell, interval, number, with_interval

TITLES = {
    "pearson": "Pearson r",
    "spearman": "Spearman ρ",
    "kendall": "Kendall τ-b",
    "q": "Q",
    "acc_eq": "acc_eq",
    "acc_eq_cross": "acc_eq cross-fitted",
    "acc_soft": "soft pairwise acc.",
    "kappa": "weighted kappa",
    "cohen-kappa": "Cohen's kappa",
    "auc": "AUC",
    "accuracy": "accuracy",
    "balanced-accuracy": "balanced acc.",
    "f1": "F1 for fail",
    "precision": "precision for fail",
    "recall": "recall for fail",
    "pairwise": "pairwise acc.",
}
UNITS = {"pooled": "rows", "within": "rows", "sample": "documents", "system": "systems"}
#: Marks a judge that agrees less than the best one beyond chance.
BEHIND = "†"


def alpha(result: MetaEvaluation) -> float:
    """Return the p below which a difference is beyond chance: where its interval leaves 0 out."""
    return round(1 - float(result.settings["confidence"]), 12)


def behind_means(result: MetaEvaluation) -> str:
    """Return the legend of the mark."""
    return f"{BEHIND} below the best beyond chance (p < {alpha(result):g}, all pairs of judges tested together)"


def count(n: int, level: str) -> str:
    """Return the basis of a value of this level, such as `98 documents`."""
    return f"{n} {UNITS[level]}" if n != 1 else f"1 {UNITS[level][:-1]}"


@dataclass(frozen=True, slots=True)
class Line:
    """A judge in a pivot: rows, rows without a score, and a cell per column.

    A cell is None if there is none; it has the mark of a value that is lower than the best beyond chance, never without
    a test. The human ceiling and the systems' mean labels are lines, too. beside: True for these, which are not judges.
    """

    name: str
    rests: str
    failed: int
    entries: tuple[Cell | None, ...]
    human: bool = False
    beside: bool = False


@dataclass(frozen=True, slots=True)
class Pivot:
    """Table of judges against aspects for one level and coefficient.

    With one aspect, judges stand against coefficients for one level, and `coefficient` is "". columns: titles. The best
    is first if `level` and `coefficient` are the headline's.
    """

    level: str
    coefficient: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]

    def title(self) -> str:
        """Return the title: coefficient and level."""
        level = "within systems" if self.level == "within" else self.level
        return f"{TITLES[self.coefficient]}, {level}" if self.coefficient else level

    @property
    def marked(self) -> bool:
        """True if any cell has a mark."""
        return any(
            entry.mark
            for line in self.lines
            for entry in line.entries
            if entry is not None
        )


def main_coefficient(result: MetaEvaluation) -> str:
    """Return the coefficient that judges are compared by, if reported; else the first one reported."""
    names = list(dict.fromkeys(result.agreement["coefficient"]))
    by = str(result.settings["compare_by"])
    return by if by in names else names[0]


def pivots(result: MetaEvaluation) -> list[Pivot]:
    """Return the tables, those of the coefficient that judges are compared by first, in the order of the levels."""
    rows = rows_of(result.agreement)
    levels, aspects, names = (
        [*dict.fromkeys(row[key] for row in rows)]
        for key in ("level", "aspect", "coefficient")
    )
    names.sort(
        key=lambda name: name not in DECIDED
    )  # where people decided, that is what is asked
    if len(aspects) == 1:
        keys = [
            (level, "", [(aspects[0], level, name) for name in names])
            for level in levels
        ]
    else:
        first = main_coefficient(result)
        ordered = sorted(names, key=lambda name: name != first)
        keys = [
            (level, name, [(aspect, level, name) for aspect in aspects])
            for name in ordered
            for level in levels
        ]
    measured = {_place(row) for row in rows}
    tables = []
    for level, coefficient, places in keys:
        if present := [place for place in places if place in measured]:
            titles = tuple(
                aspect if coefficient else TITLES[name] for aspect, _, name in present
            )
            tables.append(
                Pivot(level, coefficient, titles, tuple(_lines(present, result)))
            )
    return tables


def _place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["aspect"], row["level"], row["coefficient"]


def _lines(
    places: Sequence[tuple[str, str, str]], result: MetaEvaluation
) -> list[Line]:
    rows = rows_of(result.agreement)
    judges = list(dict.fromkeys(row["judge"] for row in rows))
    cells = {(row["judge"], *_place(row)): row for row in rows}
    worse, lines = _worse(result), []
    known_at = {
        place: [cells[j, *place] for j in judges if (j, *place) in cells]
        for place in places
    }
    best = {
        place: max(
            (row for row in rows if not math.isnan(row["value"])),
            key=lambda row: row["value"],
            default={"judge": ""},
        )["judge"]
        for place, rows in known_at.items()
    }
    for judge in judges:
        entries = [
            None
            if row is None
            else Cell(
                row["value"],
                row["low"],
                row["high"],
                best[place] == judge and len(judges) > 1,
                BEHIND * (judge in worse.get((best[place], *place), ())),
            )
            for place in places
            for row in [cells.get((judge, *place))]
        ]
        if rows := [
            cells[judge, *place] for place in places if (judge, *place) in cells
        ]:
            fewest = min(rows, key=lambda row: row["n"])
            skipped = (
                max(row["skipped"] for row in rows)
                if fewest["level"] == "sample"
                else 0
            )
            rests = count(fewest["n"], fewest["level"]) + (
                f", {skipped} skipped" if skipped else ""
            )
            lines.append(
                Line(judge, rests, max(row["failed"] for row in rows), tuple(entries))
            )
    people = {
        _place(row): row
        for row in rows_of(result.ceiling)
        if not math.isnan(row["value"])
    }
    if raters := [people[place]["raters"] for place in places if place in people]:
        found = (people.get(place) for place in places)
        entries = [
            None if row is None else Cell(row["value"], row["low"], row["high"])
            for row in found
        ]
        lines.append(
            Line(
                "human ceiling",
                f"{raters[0]} raters",
                0,
                tuple(entries),
                human=True,
                beside=True,
            )
        )
    means = {
        _place(row): row
        for row in rows_of(result.by_system)
        if not math.isnan(row["value"])
    }
    if any(place in means for place in places):
        found = (means.get(place) for place in places)
        entries = [
            None if row is None else Cell(row["value"], row["low"], row["high"])
            for row in found
        ]
        lines.append(Line(SYSTEM_MEANS, "no text read", 0, tuple(entries), beside=True))
    return lines


def _worse(result: MetaEvaluation) -> dict[tuple[str, str, str, str], set[str]]:
    """Return, by (judge, aspect, level, coefficient), the judges that agree less than it beyond chance."""
    results: dict[tuple[str, str, str, str], set[str]] = {}
    for row in rows_of(result.comparisons):
        if row["p"] < alpha(result):  # NaN is not
            better, other = (
                (row["a"], row["b"]) if row["difference"] > 0 else (row["b"], row["a"])
            )
            results.setdefault(
                (better, row["aspect"], row["level"], row["coefficient"]), set()
            ).add(other)
    return results


# The sentence --------------------------------------------------------------------------------------------------------


def headline(result: MetaEvaluation) -> str:
    """Return the result in a sentence: the best judge, its agreement and lead, and the agreement of people."""
    table = result.agreement
    name, level = main_coefficient(result), str(table["level"].iloc[0])
    aspects = list(dict.fromkeys(table["aspect"]))
    aspect = AVERAGE if AVERAGE in aspects else aspects[0]
    rows = rows_of(table[table["aspect"] == aspect])
    # Where people decided, that is what is asked, whatever judges are compared by.
    level_of = {row["coefficient"]: row["level"] for row in reversed(rows)}
    names = [one for one in ("kappa", "accuracy", "pairwise") if one in level_of] or [
        name,
        rows[0]["coefficient"],
    ]
    name = next(one for one in names if one in level_of)
    level = (
        level
        if (name, level) in {(row["coefficient"], row["level"]) for row in rows}
        else level_of[name]
    )
    at = [row for row in rows if (row["level"], row["coefficient"]) == (level, name)]
    ranked = sorted(
        (row for row in at if not math.isnan(row["value"])),
        key=lambda row: -row["value"],
    )
    if not ranked:
        return f"No judge has a defined agreement with the human ratings: {at[0]['reason'] or 'no score is there'}."
    best, judged = ranked[0], [one for one in aspects if one != AVERAGE]
    over = f" on average over {len(judged)} aspects" if aspect == AVERAGE else ""
    over = f" for {aspect}" if len(judged) > 1 and not over else over
    missing = f", {best['failed']} without a score" if best["failed"] else ""
    where = f"({level}, {count(best['n'], level)}{missing})"
    on, value = (
        "at",
        f"{TITLES[name]} {with_interval(best['value'], best['low'], best['high'])}",
    )
    if name == "accuracy":
        limits = interval(100 * best["low"], 100 * best["high"], 0)
        on, value = (
            "on",
            f"{100 * best['value']:.0f} % {limits}".strip() + " of the rows",
        )
    if len(ranked) == 1:
        lines = [
            f"{best['judge']} agrees with the human ratings {on} {value}{over} {where}{_surely(best)}."
        ]
    else:
        lines = [
            f"Of {len(at)} judges, {best['judge']} agrees best with the human ratings: {value}{over} "
            f"{where}{_surely(best)}.",
            _lead(result, best, ranked[1], judged if aspect == AVERAGE else [aspect]),
        ]
    return " ".join(
        filter(
            None,
            [
                *lines,
                _against_people(
                    result, best, judged if aspect == AVERAGE else [aspect]
                ),
            ],
        )
    )


def _surely(row: Mapping[str, Any]) -> str:
    chance = (
        0.5 if row["coefficient"] in ("auc", "balanced-accuracy", "pairwise") else 0.0
    )
    if math.isnan(row["low"]) or row["coefficient"].startswith("acc"):
        return ""
    if row["high"] < chance:
        return "; it runs against them"
    return "" if row["low"] > chance else "; that cannot be distinguished from chance"


def _lead(
    result: MetaEvaluation,
    best: Mapping[str, Any],
    second: Mapping[str, Any],
    aspects: Sequence[str],
) -> str:
    """Return the best judge's lead over the next, and the aspects on which it is more than chance."""
    ahead = best["value"] - second["value"]
    text = f"The next is {second['judge']}, {number(ahead, 2)} lower"
    pair, tested = {best["judge"], second["judge"]}, {}
    for row in rows_of(result.comparisons):
        if {row["a"], row["b"]} == pair and (row["level"], row["coefficient"]) == (
            best["level"],
            best["coefficient"],
        ):
            tested[row["aspect"]] = row
    results = [tested[aspect] for aspect in aspects if aspect in tested]
    if not results or (len(aspects) == 1 and math.isnan(results[0]["p"])):
        return f"{text}; not tested."
    if len(aspects) == 1:
        row = results[0]
        sign = 1 if row["a"] == best["judge"] else -1
        low, high = sorted((sign * row["low"], sign * row["high"]))
        lead = sign * row["difference"]
        if abs(lead - ahead) > 1e-9:  # one of them failed on rows that the other scored
            text += f"; on the rows that both scored {number(abs(lead), 2)} {'lower' if lead >= 0 else 'higher'}"
        sure = (
            "a difference beyond chance"
            if row["p"] < alpha(result)
            else "which may be chance"
        )
        return f"{text} {interval(low, high)}, {sure} (p = {number(row['p'])})."
    # Equal signs: a judge can lead on average and trail, beyond chance, on one aspect.
    leads = [
        row for row in results if (row["a"] == best["judge"]) == (row["difference"] > 0)
    ]
    ahead_on = [row["aspect"] for row in leads if row["p"] < alpha(result)]
    listed = f": {', '.join(ahead_on)}" if 0 < len(ahead_on) < len(results) else ""
    return f"{text}; the lead is beyond chance on {len(ahead_on)} of {len(results)} aspects{listed}."


def _against_people(
    result: MetaEvaluation, best: Mapping[str, Any], aspects: Sequence[str]
) -> str:
    at = (best["level"], best["coefficient"])
    results = {
        row["aspect"]: row
        for row in rows_of(result.ceiling)
        if (row["level"], row["coefficient"]) == at
    }
    rows = [
        results[aspect]
        for aspect in aspects
        if aspect in results and not math.isnan(results[aspect]["value"])
    ]
    if not rows or len(rows) < len(aspects):
        return ""
    value = math.fsum(row["value"] for row in rows) / len(rows)
    low = rows[0]["low"] if len(rows) == 1 else math.nan
    people = with_interval(value, low, rows[0]["high"])
    place = "above" if best["value"] > value else "below"
    return f"{best['judge']} is {place} the human ceiling of {people}: one rater with the mean of the others."
