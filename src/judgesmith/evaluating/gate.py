"""The gate of `judgesmith evaluate --fail-under`: a bar for the lower end of an interval, for use in CI."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..agreement.meta.evaluation import MetaEvaluation, rows_of, text
from ..agreement.meta.inputs import AVERAGE, COEFFICIENTS, DECIDED, LEVEL_OF, LEVELS
from ..errors import OptionError


@dataclass(frozen=True)
class Gate:
    """A bar that the first judge has to clear: the lower end of the interval of `coefficient` at `level`."""

    coefficient: str
    level: str | None
    least: float
    text: str

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Read `spearman>=0.4`, `sample.kendall >= 0.3`, `balanced-accuracy>=0.7`. Raises OptionError."""
        left, sign, right = text.partition(">=")
        *level, name = left.strip().lower().replace("balanced_", "balanced-").split(".")
        try:
            least = float(right)
        except ValueError:
            least = math.nan
        if not sign or name not in COEFFICIENTS or len(level) > 1 or not math.isfinite(least):
            raise OptionError(
                f"--fail-under {text!r} is not of the form [LEVEL.]COEFFICIENT>=NUMBER, such as spearman>=0.4 or "
                f"sample.kendall>=0.3; the coefficients are {', '.join(COEFFICIENTS)}"
            )
        if level and level[0] not in LEVELS:
            raise OptionError(f"--fail-under {text!r}: level {level[0]!r} is not one of {', '.join(LEVELS)}")
        high = 3.0 if name == "q" else 1.0
        low = 0.0 if name.startswith("acc") or name in ("balanced-accuracy", "f1", "auc", "pairwise") else -high
        if name in DECIDED and level and level[0] != LEVEL_OF[name]:
            where = "within documents" if LEVEL_OF[name] == "sample" else "over all rows together"
            raise OptionError(f"--fail-under {text!r}: {name} is measured {where}; leave {level[0]} out")
        if not low <= least <= high:
            raise OptionError(f"--fail-under {text!r}: {name} lies in {low:g}..{high:g}")
        return cls(name, level[0] if level else None, least, text.strip())

    def judge(self, result: MetaEvaluation, min_coverage: float) -> list[str]:
        """The reasons why the first judge fails, none if it passes. Coverage: share of labelled rows with a score."""
        table = result.agreement
        name = str(table["judge"].iloc[0])
        level = self.level or LEVEL_OF.get(self.coefficient) or str(table["level"].iloc[0])
        if level not in set(table["level"]):
            return [f"level {level} was not computed for these rows"]
        rows = table[
            (table["judge"] == name)
            & (table["level"] == level)
            & (table["coefficient"] == self.coefficient)
            & (table["aspect"] != AVERAGE)
        ]
        reasons = []
        for row in rows_of(rows):
            what = f"{name}, {row['aspect']}: {level} {self.coefficient}"
            low, high, value = float(row["low"]), float(row["high"]), float(row["value"])
            share = 1 - row["failed"] / row["rows"]
            if share < min_coverage:
                reasons.append(
                    f"{what} rests on {row['rows'] - row['failed']} of {row['rows']} rows, coverage {share:.1%} is "
                    f"below {min_coverage:.1%}"
                )
            elif math.isnan(low) or high - low < 1e-9:
                reasons.append(f"{what} has no interval ({text(row['reason']) or 'no resamples were drawn'})")
            elif low < self.least:
                reasons.append(
                    f"{what} is {value:.3f}, but the lower end of its interval, {low:.3f}, is not at least "
                    f"{self.least:g}"
                )
        return reasons if len(rows) else [f"{self.coefficient} was not computed for {name}"]
