"""The gate of `judgesmith check --fail-under`: a bar for the lower end of an interval, for use in CI."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy
from scipy.special import ndtr

from judgesmith.agreement.coefficients import (
    Correlation,
    coefficient_of,
    coefficients,
)
from judgesmith.agreement.levels import LEVELS
from judgesmith.agreement.meta.evaluation import MetaEvaluation, rows_of, text
from judgesmith.agreement.meta.inputs import AVERAGE
from judgesmith.errors import OptionError
from judgesmith.evaluating.passrate import PassRate
from judgesmith.evaluating.sources import plain_name

#: Names of tables beside the agreement: the way to one human rater, and errors in points of the scale, which pass
#: where they are small.
WAY = "way"
ERRORS = ("mae", "rmse")
#: The share of all rows that people would pass, by the judge's verdicts and the labels of some.
RATE = "rate"
#: What --spans measures, of characters.
OF_SPANS = ("precision", "recall", "f1")
#: Where the scale of atanh is cut.
NEAREST = 1 - 1e-9
#: As the tables call some of them.
SYNONYMS = {
    "balanced_accuracy": "balanced-accuracy",
    "cohen_kappa": "cohen-kappa",
    "agreement": "accuracy",
    "tnr": "recall",
}
_FORM = re.compile(
    r"\s*(?:(?P<aspect>.*?[^\s:])\s*:\s*)?(?:(?P<level>\w+)\.)?(?P<name>[\w-]+)\s*(?P<sign>[<>]=)\s*(?P<bar>\S+)\s*"
)


@dataclass(frozen=True)
class Gate:
    """A bar that the first judge has to clear.

    It holds against the lower end of the interval of `coefficient` at `level`, or the upper end of an error's.
    """

    coefficient: str
    level: str | None
    bar: float
    text: str
    aspect: str | None = None
    """The aspect that the bar is for, in the form of `plain_name`; None for every aspect."""

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Read `spearman>=0.4`, `sample.kendall >= 0.3`, `recall>=0.7`, `mae<=0.5` or `fluency:q>=1`.

        Raises:
            OptionError: If the text has another form.
        """
        match = _FORM.fullmatch(text.lower())
        name = match["name"] if match else ""
        name = SYNONYMS.get(name, name)
        try:
            bar = float(match["bar"]) if match else math.nan
        except ValueError:
            bar = math.nan
        if (
            match is None
            or name not in (*coefficients.names(), WAY, RATE, *ERRORS)
            or not math.isfinite(bar)
        ):
            errors = ", ".join(f"{one}<=0.5" for one in ERRORS)
            raise OptionError(
                f"--fail-under {text!r} is not of the form [ASPECT:][LEVEL.]COEFFICIENT>=NUMBER, such as "
                "spearman>=0.4, sample.kendall>=0.3 or fluency:q>=1; the coefficients are "
                f"{', '.join(coefficients.names())}, {WAY} (the share of the way to one human rater), {RATE} "
                f"(the share of all rows that people would pass), and errors that may not exceed a number: {errors}"
            )
        _fits(text, name, match["level"], match["sign"], bar)
        aspect = match["aspect"] and plain_name(match["aspect"])
        return cls(name, match["level"], bar, text.strip(), aspect)

    def judge(
        self,
        result: MetaEvaluation,
        min_coverage: float,
        rates: Iterable[PassRate] = (),
    ) -> list[str]:
        """Return the reasons why the first judge fails, none if it passes.

        min_coverage: share of labelled rows that need a score, in [0, 1]. rates: pass rates of all rows.
        """
        name = str(result.agreement["judge"].iloc[0])
        table = result.agreement
        if self.coefficient not in (RATE, WAY, *ERRORS):
            level = self._level(table)
            if level not in set(table["level"]):
                return [f"level {level} was not computed for these rows"]
        return self.reasons(name, self._numbers(name, result, rates), min_coverage)

    def _numbers(
        self, name: str, result: MetaEvaluation, rates: Iterable[PassRate]
    ) -> Iterator[dict[str, Any]]:
        """Return a judge's numbers that the bar is for."""
        if self.coefficient == RATE:
            return self._rates(name, rates)
        if self.coefficient == WAY:
            return self._way(name, result.way)
        if self.coefficient in ERRORS:
            return self._errors(name, result.scale)
        return self._rows(result.agreement, name)

    @property
    def correlates(self) -> bool:
        """Whether the bar is for a coefficient of scores."""
        if self.coefficient in (WAY, RATE, *ERRORS):
            return False
        return issubclass(coefficient_of(self.coefficient), Correlation)

    def _level(self, table: pd.DataFrame) -> str:
        levels = coefficient_of(self.coefficient).levels
        own = self.level or (levels[0] if len(levels) == 1 else None)
        return own or str(table["level"].iloc[0])

    def _rows(self, table: pd.DataFrame, name: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a judge's agreement that the bar is for."""
        level = self._level(table)
        at = (
            (table["judge"] == name)
            & (table["level"] == level)
            & (table["coefficient"] == self.coefficient)
            & (table["aspect"] != AVERAGE)
        )
        for row in rows_of(table[at]):
            yield {"what": f"{level} {self.coefficient}"} | row

    def _way(self, name: str, table: pd.DataFrame) -> Iterator[dict[str, Any]]:
        for row in rows_of(table[table["judge"] == name]):
            yield row | {
                "what": "share of the way to one human rater",
                "failed": 0,
                "rows": 1,
            }

    def _rates(self, name: str, rates: Iterable[PassRate]) -> Iterator[dict[str, Any]]:
        for one in rates:
            if one.judge == name:
                counts = {"failed": 0, "rows": 1, "reason": ""}
                yield one.to_dict() | counts | {"what": "pass rate of all rows"}

    def _errors(self, name: str, table: pd.DataFrame) -> Iterator[dict[str, Any]]:
        for row in rows_of(table[table["judge"] == name]):
            ends = {key: row[f"{self.coefficient}_{key}"] for key in ("low", "high")}
            counts = {"failed": row["failed"], "rows": row["n"] + row["failed"]}
            yield (
                row
                | ends
                | counts
                | {"what": self.coefficient, "value": row[self.coefficient]}
            )

    def curve(
        self, result: MetaEvaluation
    ) -> tuple[int, Callable[[float, int], float]] | None:
        """Return the labels at hand, and how often a judge passes by its true agreement and the number of labels.

        By Fisher's z. Its standard error is that of the judge's interval, so that documents and ties are in it. None
        for a number that is no correlation, or that has no interval.
        """
        table = result.agreement
        rows = self._rows(table, str(table["judge"].iloc[0]))
        row = next(rows, None) if self.correlates else None
        if row is None or not row["high"] - row["low"] > 1e-9:
            return None
        confidence = (1 + float(result.settings["confidence"])) / 2
        reach = float(scipy.stats.norm.ppf(confidence))
        ends = np.arctanh(np.clip([row["low"], row["high"]], -NEAREST, NEAREST))
        error = float(np.diff(ends)[0]) / (2 * reach)
        n = int(row["n"])

        def passing(true: float, labels: int) -> float:
            ahead = math.atanh(true) - math.atanh(self.bar)
            return float(ndtr(ahead / error * math.sqrt(labels / n) - reach))

        return n, passing

    def power(self, result: MetaEvaluation) -> str | None:
        """Return how often judges of a true agreement above the bar pass with these labels; None if unknown."""
        curve = self.curve(result)
        if curve is None:
            return None
        n, passing = curve
        table = result.agreement
        row = next(self._rows(table, str(table["judge"].iloc[0])))
        better = (round(self.bar + step, 2) for step in (0.1, 0.2, 0.3))
        told = [f"{true:g} in {passing(true, n):.0%}" for true in better if true < 1]
        if not told:
            return None
        return (
            f"with these {n} {'rows' if row['level'] == 'pooled' else 'units'}, a judge of true {row['level']} "
            f"{self.coefficient} {', '.join(told)} of cases passes {self.text}"
        )

    def uncovered(self, result: MetaEvaluation, min_coverage: float) -> list[str]:
        """Return the reasons why the first judge scored too few rows, none if it scored enough."""
        table = result.agreement
        name = str(table["judge"].iloc[0])
        reasons = []
        for row in self._numbers(name, result, ()):
            aspect = str(row["aspect"])
            if self.aspect in (None, plain_name(aspect)):
                what = f"{name}, {aspect}: {row['what']}"
                reasons.append(_uncovered(what, row, min_coverage))
        return [reason for reason in reasons if reason is not None]

    def reasons(
        self, judge: str, rows: Iterable[Mapping[str, Any]], min_coverage: float
    ) -> list[str]:
        """Return the reasons why numbers do not pass.

        rows: aspect, name of the number, value, low, high, rows, failed ones, and a reason.
        """
        compared = list[Mapping[str, Any]]()
        others = dict[str, None]()
        for row in rows:
            aspect = str(row["aspect"])
            if self.aspect in (None, plain_name(aspect)):
                compared.append(row)
            others[aspect] = None
        if not compared:
            there = ", ".join(others)
            of = f" for aspect {self.aspect}; there are: {there}" if there else ""
            return [f"{self.coefficient} was not computed for {judge}{of}"]
        reasons = (
            self._reason(f"{judge}, {row['aspect']}: {row['what']}", row, min_coverage)
            for row in compared
        )
        return [reason for reason in reasons if reason is not None]

    def _reason(
        self, what: str, row: Mapping[str, Any], min_coverage: float
    ) -> str | None:
        """Return the reason why this number does not pass."""
        low = float(row["low"])
        high = float(row["high"])
        value = float(row["value"])
        if (lacking := _uncovered(what, row, min_coverage)) is not None:
            return lacking
        if math.isnan(low) or high - low < 1e-9:
            return f"{what} has no interval ({text(row['reason']) or 'no resamples were drawn'})"
        if self.coefficient in ERRORS:
            passes = high <= self.bar
            end = f"upper end of its interval, {high:.3f}"
            limit = "at most"
        else:
            passes = low >= self.bar
            end = f"lower end of its interval, {low:.3f}"
            limit = "at least"
        if passes:
            return None
        return f"{what} is {value:.3f}, but the {end}, is not {limit} {self.bar:g}"


def _uncovered(what: str, row: Mapping[str, Any], min_coverage: float) -> str | None:
    """Return the reason why a number rests on too few rows; None if it rests on enough."""
    share = 1 - row["failed"] / row["rows"]
    if share >= min_coverage:
        return None
    scored = f"{row['rows'] - row['failed']} of {row['rows']} rows"
    return f"{what} rests on {scored}, coverage {share:.1%} is below {min_coverage:.1%}"


@dataclass(frozen=True)
class Gated:
    """Gates, each with the reasons why it was not passed; none for one that was."""

    found: tuple[tuple[Gate, tuple[str, ...]], ...]

    @classmethod
    def of(
        cls, gates: Sequence[Gate], reasons: Callable[[Gate], Sequence[str]]
    ) -> Self:
        """Put every gate to the test."""
        return cls(tuple((gate, tuple(reasons(gate))) for gate in gates))

    @property
    def reasons(self) -> list[str]:
        """The reasons of all gates that were not passed."""
        return [reason for _, reasons in self.found for reason in reasons]

    def named(self, *, passed: bool) -> str:
        """Return the texts of the gates that were passed, or of those that were not."""
        texts = (gate.text for gate, reasons in self.found if passed == (not reasons))
        return ", ".join(texts)

    @property
    def headline(self) -> str | None:
        """The gates that were not passed, or all if every one was; None without gates."""
        return self.named(passed=False) or self.named(passed=True) or None

    def in_words(self) -> str | None:
        """Return the outcome in one line; None without gates."""
        failed = self.named(passed=False)
        passed = self.named(passed=True)
        if not failed:
            return f"passed {passed}" if passed else None
        line = f"FAILED {failed}: {'; '.join(self.reasons)}"
        return f"{line}; passed {passed}" if passed else line

    def to_dict(self) -> dict[str, Any] | None:
        """Return plain JSON types: all gates together, and each; None without gates."""
        if not self.found:
            return None
        each = [
            {"gate": gate.text, "passed": not reasons, "reasons": list(reasons)}
            for gate, reasons in self.found
        ]
        whole = ", ".join(gate.text for gate, _ in self.found)
        reasons = self.reasons
        return {"gate": whole, "passed": not reasons, "reasons": reasons, "gates": each}


def check_aspects(gates: Sequence[Gate], aspects: Iterable[str]) -> None:
    """Refuse a gate of an aspect that is not evaluated.

    Raises:
        OptionError: For such a gate.
    """
    names = {plain_name(aspect): aspect for aspect in aspects}
    for gate in gates:
        if gate.aspect is not None and gate.aspect not in names:
            raise OptionError(
                f"--fail-under {gate.text!r}: there is no aspect {gate.aspect!r}; there are {', '.join(names.values())}"
            )


def _fits(text: str, name: str, level: str | None, sign: str, bar: float) -> None:
    """Raise OptionError for a level, a sign or a bar that a number does not have."""
    _level_fits(text, name, level)
    if sign == "<=" and name not in ERRORS:
        raise OptionError(f"--fail-under {text!r}: more is better: write >=")
    if sign != "<=" and name in ERRORS:
        raise OptionError(
            f"--fail-under {text!r}: of an error the upper end counts: write <="
        )
    low, high = _range(name)
    if not low <= bar <= high:
        raise OptionError(f"--fail-under {text!r}: {name} lies in {low:g}..{high:g}")


def _level_fits(text: str, name: str, level: str | None) -> None:
    """Raise OptionError for a level that a number is not measured at."""
    if level is None:
        return
    if level not in LEVELS:
        raise OptionError(
            f"--fail-under {text!r}: level {level!r} is not one of {', '.join(LEVELS)}"
        )
    if name in (WAY, RATE, *ERRORS):
        raise OptionError(
            f"--fail-under {text!r}: {name} is measured over all rows together; leave {level} out"
        )
    levels = coefficient_of(name).levels
    if level not in levels:
        where = " or ".join(LEVELS[one].where for one in levels)
        raise OptionError(
            f"--fail-under {text!r}: {name} is measured {where}; leave {level} out"
        )


def _range(name: str) -> tuple[float, float]:
    """Return the lowest and the highest value of a number."""
    if name in ERRORS:
        return 0.0, math.inf
    if name == WAY:
        return -math.inf, math.inf
    if name == RATE:
        return 0.0, 1.0
    declared = coefficient_of(name)
    return declared.low, declared.high
