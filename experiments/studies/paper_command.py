"""`judgesmith study paper`: a paper's table on any model, with the published rows beside ours."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...cli.commands import Command, Json, Model, argument, flag
from ...errors import OptionError
from ...parts import read_options

if TYPE_CHECKING:
    from ...programs.models.lm import Connection
    from ...running.settings import Catalogue
    from .analysis import Analysis
    from .paper import Joined, PaperTable

__all__ = ["Paper"]


class Paper(Command, Model, Json):
    """A table of one of the papers, on your model: the published row beside ours, and what differs.

    Each column is a study of its own in a folder below -o, run by the paper's preset on the benchmark set (`judgesmith
    list data`). The same command resumes where it stopped. The joined table is table.md and table.json. Further options
    are those of `judgesmith compile`. Exit code 0: all cells are there; 1: some failed; 2: an error.
    """

    table: str | None = argument(None, "A table, such as active-critic/table-1; none lists them.", "NAME")
    annotator: list[str] = flag([], "A model of OpeNLGauge's ensemble; repeatable. None: --lm annotates alone.")
    column: list[str] = flag([], "Run only this column (a set or an aspect); repeatable.")
    arm: list[str] = flag([], "Run only this row; repeatable.")
    output: Path | None = flag(None, "Default: paper-NAME.", "-o", "--output", metavar="FOLDER")
    seeds: str | None = flag(None, "As in `study ablation`.", metavar="N|A,B,…")
    train: str | None = flag(None, "Labels to learn from.", metavar="N|all")
    heldout: str | None = flag(None, "Share or number of rows to compare on.")
    rows: int | None = flag(None, "Judge the first rows only, where nothing is learnt (subsets, spans).", ge=2)
    max_calls: int | None = flag(None, "Calls at most to fit one cell; to judge a column of subsets or spans.", ge=1)
    dry_run: bool = flag(False, "Show what the run would take, spend nothing.")
    overwrite: bool = flag(False, "Start the folders over.")

    @classmethod
    def catalogue(cls, given: Mapping[str, Any]) -> Catalogue:
        from .config import catalogue

        return catalogue()

    @classmethod
    def start(cls, given: Mapping[str, Any]) -> int:
        """Settings mean something to some of the arms only, which the studies look up."""
        own = {name: value for name, value in given.items() if name in cls.model_fields}
        made = read_options(cls, {"lm": os.environ.get("JUDGESMITH_LM")} | own, "judgesmith study paper")
        return made.work({name: value for name, value in given.items() if name not in own})

    def work(self, settings: dict[str, Any]) -> int:
        """settings: of `judgesmith compile`, for all arms."""
        from ...running.opening import quiet
        from . import paper as papers

        if self.table is None:
            _list(as_json=self.as_json)
            return 0
        known = papers.read(self.table)
        folder = self.output or Path(f"paper-{papers.slug(self.table)}")
        if unknown := [name for name in self.column if name not in known.columns]:
            raise OptionError(f"--column {unknown[0]!r}: {self.table} has {', '.join(known.columns)}")
        columns = self.column or list(known.columns)
        if known.kind == "study" and self.rows:
            raise OptionError(f"--rows: {self.table} learns from rows; give --train and --heldout")
        with quiet():
            if known.kind == "aspects":
                _finish(papers.rows_of(self.table, known, self.column), folder, [], as_json=self.as_json)
                return 0
            if known.kind == "study":
                flags = {
                    "lm": self.lm, "arms": _arms(known, self.arm), "seeds": self.seeds, "train": self.train,
                    "heldout": self.heldout, "max_calls": self.max_calls, "api_base": self.api_base or None,
                    **settings, **_ensemble(self.table, known, self.lm, self.annotator),
                }  # fmt: skip
                return _run(
                    self.table, known, columns, flags, folder, dry_run=self.dry_run, overwrite=self.overwrite,
                    as_json=self.as_json,
                )  # fmt: skip
            asked = (self.lm or "", tuple(self.annotator), self.rows, self.max_calls, settings)
            base = next(iter(self.api_base), None)
            _annotate(self.table, known, columns, asked, folder, base, dry_run=self.dry_run, as_json=self.as_json)
        return 0


def _list(*, as_json: bool) -> None:
    """The tables there are."""
    from ...running.console import out, print_json
    from . import paper as papers

    listed = [{"name": name, "about": papers.about(name)} for name in papers.names()]
    if as_json:
        print_json({"tables": listed})
    for one in [] if as_json else listed:
        out.print(f"{one['name']:28} {one['about']}", markup=False, highlight=False, soft_wrap=True)


def _ensemble(name: str, table: PaperTable, lm: str | None, annotators: list[str] | None) -> dict[str, Any]:
    """OpeNLGauge's annotators: a model that was named annotates alone."""
    if table.preset.startswith("openlgauge"):
        return {"annotators": list(annotators or ())} if lm or annotators else {}
    if annotators:
        raise OptionError(f"--annotator: {name} has no ensemble")
    return {}


def _annotate(
    name: str,
    table: PaperTable,
    columns: list[str],
    given: tuple[Any, ...],
    folder: Path,
    api_base: str | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Columns whose rows an ensemble annotates once. given: the fields of `Asked`."""
    from ...programs.models.lm import Connection
    from ...running.console import out, print_json
    from ...running.journal import alone
    from . import annotating

    asked, where = annotating.Asked(*given), Connection(api_base=api_base)
    if not dry_run:
        with alone(folder, folder=True):
            _finish(annotating.joined(name, table, columns, asked, folder, where), folder, [], as_json=as_json)
        return
    calls = {}
    for column in columns:
        labels = asked.labels(table, column)
        calls[column] = len(labels) * asked.judge(table, column, labels.scale).calls_per_row()
    if as_json:
        plans = [{"column": column, "calls": n} for column, n in calls.items()]
        print_json({"dry_run": True, "table": name, "columns": plans, "calls": sum(calls.values())})
    for column, n in {} if as_json else calls.items():
        out.print(f"{column}: at most {n:,} calls", markup=False, highlight=False)


def _arms(table: PaperTable, chosen: list[str] | None) -> list[Any] | None:
    """The preset's arms of these names, None for all of them."""
    from ...presets import read

    if not chosen:
        return None
    arms = {arm["name"] if isinstance(arm, dict) else arm: arm for arm in read(table.preset)["arms"]}
    if unknown := [name for name in chosen if name not in arms]:
        raise OptionError(f"--arm {unknown[0]!r}: the rows are {', '.join(arms)}")
    return [arms[name] for name in chosen]


def _run(
    name: str,
    table: PaperTable,
    columns: list[str],
    flags: dict[str, Any],
    folder: Path,
    *,
    dry_run: bool,
    overwrite: bool,
    as_json: bool,
) -> int:
    """Every column's study, then the joined table."""
    from ...running.journal import alone
    from . import paper as papers
    from . import running as studies
    from .run import Study

    plans: list[dict[str, Any]] = []
    found: dict[str, Analysis] = {}
    failures: list[str] = []
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory())) if dry_run else folder
        prepared = {
            column: papers.given_for(table, column, flags, place / papers.slug(column)) for column in columns
        }  # fmt: skip
        where: Connection = prepared[columns[0]].connection()
        made = {column: Study.prepare(given) for column, given in prepared.items()}
        if not dry_run:
            stack.enter_context(alone(folder, folder=True))
        for column, one in made.items():
            if dry_run:
                plans.append({"column": column, **studies.plan_of(one, where)})
                if not as_json:
                    studies.show_plan(one, where, column)
                continue
            analysis, _, _ = studies.run_one(
                one, folder / papers.slug(column), where, overwrite=overwrite, said=None if as_json else column
            )
            found[column] = analysis
            failures += [f"{column}: {cell}: {reason}" for cell, reason in analysis.failures]
    if dry_run:
        if as_json:
            from ...running.console import print_json

            print_json({"dry_run": True, "table": name, "columns": plans, "calls": sum(p["calls"] for p in plans)})
        return 0
    _finish(papers.table_of(name, table, found), folder, failures, as_json=as_json)
    return 1 if failures else 0


def _finish(joined: Joined, folder: Path, failures: list[str], *, as_json: bool) -> None:
    """Write and show the joined table."""
    from ...running.console import out, print_json
    from ...running.plain import clean
    from . import paper as papers

    written = papers.write(joined, folder)
    if as_json:
        rows = [row.to_dict() for row in joined.rows]
        print_json(
            {
                "table": joined.name, "output": str(folder), "columns": list(joined.columns), "rows": rows,
                "notes": list(joined.notes), "failures": failures,
            }
        )  # fmt: skip
        return
    papers.shown(joined).show(out)
    for note in joined.notes:
        out.print(f"note: {clean(note)}", style="dim", markup=False)
    for failure in failures[:6]:
        out.print(f"failed: {clean(failure)}", style="red", markup=False)
    out.print(f"Wrote {clean(str(folder))}: {', '.join(p.name for p in written)}", markup=False, soft_wrap=True)
