"""Tables for papers and spreadsheets, as LaTeX or CSV.

One has the agreement, judges against levels and coefficients; the other every row beside every judge.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..agreement.meta.evaluation import MetaEvaluation, rows_of
from ..errors import OptionError
from .pivot import TITLES
from .sources import Judged

KINDS = (".tex", ".csv")
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "ρ": r"$\rho$",
    "τ": r"$\tau$",
}


def check_kind(name: str, path: Path | None) -> None:
    """Raise OptionError for a file that is neither LaTeX nor CSV."""
    if path is not None and path.suffix.lower() not in KINDS:
        raise OptionError(f"--{name} {path}: write {' or '.join(KINDS)}")


def agreement_table(result: MetaEvaluation, path: Path) -> str:
    """Return a line for each judge, a column for each aspect, level and coefficient: the value with its interval."""
    found = rows_of(result.agreement)
    aspects = list(dict.fromkeys(row["aspect"] for row in found))
    keys = list(
        dict.fromkeys(
            (row["aspect"], row["level"], row["coefficient"]) for row in found
        )
    )
    titles = [
        f"{aspect + ' ' if len(aspects) > 1 else ''}{level} {TITLES[coefficient]}"
        for aspect, level, coefficient in keys
    ]
    cells = {
        (row["judge"], row["aspect"], row["level"], row["coefficient"]): row
        for row in found
    }
    judges = list(dict.fromkeys(row["judge"] for row in found))
    if path.suffix.lower() == ".tex":
        lines = [
            [judge, *(_shown(cells.get((judge, *key))) for key in keys)]
            for judge in judges
        ]
        return _latex(["judge", *titles], lines)
    ends = [f"{title}{end}" for title in titles for end in ("", " low", " high")]
    rows = [
        [judge, *(_ends(cells.get((judge, *key)))[k] for key in keys for k in range(3))]
        for judge in judges
    ]
    return _csv(["judge", *ends], rows)


def row_table(data: Judged, path: Path) -> str:
    """Return a line for each row: its id, human ratings by aspect, and every judge's scores."""
    columns: dict[str, Sequence[float]] = {
        f"people: {aspect}": values.tolist() for aspect, values in data.human.items()
    }
    for judge, by_aspect in data.judges.items():
        several = len(data.human) > 1
        columns |= {
            f"{judge}: {aspect}" if several else judge: v.tolist()
            for aspect, v in by_aspect.items()
        }
    lines = [
        [
            row.id,
            *(
                "" if math.isnan(values[i]) else f"{values[i]:.6g}"
                for values in columns.values()
            ),
        ]
        for i, row in enumerate(data.rows)
    ]
    titles = ["id", *columns]
    return (
        _latex(titles, lines) if path.suffix.lower() == ".tex" else _csv(titles, lines)
    )


def _ends(row: Mapping[str, Any] | None) -> list[str]:
    values = [math.nan] * 3 if row is None else [row["value"], row["low"], row["high"]]
    return ["" if math.isnan(value) else f"{value:.6g}" for value in values]


def _shown(row: Mapping[str, Any] | None) -> str:
    if row is None or math.isnan(row["value"]):
        return "--"
    ends = "" if math.isnan(row["low"]) else f" [{row['low']:.2f}, {row['high']:.2f}]"
    return f"{row['value']:.2f}{ends}"


def _latex(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a tabular with the rules of booktabs; no text is markup."""
    rows = [" & ".join(map(_escaped, line)) + r" \\" for line in (titles, *lines)]
    begin = r"\begin{tabular}{l" + "r" * (len(titles) - 1) + "}"
    return "\n".join(
        [
            begin,
            r"\toprule",
            rows[0],
            r"\midrule",
            *rows[1:],
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(sign, sign) for sign in " ".join(text.split()))


def _csv(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([titles, *lines])
    return text.getvalue()
