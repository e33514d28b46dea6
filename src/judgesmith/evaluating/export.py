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

from judgesmith.agreement.coefficients import title_of
from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.meta.evaluation import MetaEvaluation, rows_of
from judgesmith.errors import OptionError
from judgesmith.evaluating.pivot import distinct
from judgesmith.evaluating.sources import Judged

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
    rows = rows_of(result.agreement)
    several = len(distinct(rows, "aspect")) > 1
    row_at: dict[tuple[str, Any], Mapping[str, Any]] = {}
    titles: dict[Any, str] = {}
    for row in rows:
        place = (row["aspect"], row["level"], row["coefficient"])
        row_at[row["judge"], place] = row
        title = f"{row['level']} {title_of(row['coefficient'])}"
        titles[place] = f"{row['aspect']} {title}" if several else title
    latex = path.suffix.lower() == ".tex"
    lines = []
    for judge in distinct(rows, "judge"):
        line = [judge]
        for place in titles:
            row_there = row_at.get((judge, place))
            line += [_shown(row_there)] if latex else _ends(row_there)
        lines.append(line)
    if latex:
        return _latex(["judge", *titles.values()], lines)
    columns = ["judge"]
    for title in titles.values():
        columns += [title, f"{title} low", f"{title} high"]
    return _csv(columns, lines)


def row_table(data: Judged, path: Path) -> str:
    """Return a line for each row: its id, human ratings by aspect, and every judge's scores."""
    columns: dict[str, Vector] = {}
    for aspect, ratings in data.human.items():
        columns[f"people: {aspect}"] = ratings
    several = len(data.human) > 1
    for judge, by_aspect in data.judges.items():
        for aspect, scores in by_aspect.items():
            columns[f"{judge}: {aspect}" if several else judge] = scores
    lines = []
    for i, row in enumerate(data.rows):
        values = [_number(float(column[i])) for column in columns.values()]
        lines.append([row.id, *values])
    titles = ["id", *columns]
    latex = path.suffix.lower() == ".tex"
    return _latex(titles, lines) if latex else _csv(titles, lines)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def _ends(row: Mapping[str, Any] | None) -> list[str]:
    if row is None:
        return ["", "", ""]
    return [_number(row[name]) for name in ("value", "low", "high")]


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
