"""`judgesmith study paper`: a paper's table on any model, with the published rows beside ours."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesmith.cli.commands import Command, Json, Model, argument, flag
from judgesmith.errors import OptionError
from judgesmith.parts import read_options

if TYPE_CHECKING:
    from judgesmith.experiments.studies.analysis import Analysis
    from judgesmith.experiments.studies.papers.table import Joined, PaperTable
    from judgesmith.running.settings import Catalogue


class Paper(Command, Model, Json):
    """Reproduce a table of one of the papers on your model, beside the published rows.

    Each column is a study in its own folder below -o. It uses the paper's preset and benchmark set (`judgesmith list
    data`). The same command resumes where it stopped. The joined table is table.md and table.json. The options of
    `judgesmith compile` apply, too. Exit code 0: all cells finished; 1: some failed; 2: an error.
    """

    table: str | None = argument(
        None,
        "Table to reproduce, e.g. active-critic/table-1. Default: list the tables.",
        "NAME",
    )
    annotator: list[str] = flag(
        [], "Model of OpeNLGauge's ensemble. Default: --lm alone. Repeatable."
    )
    column: list[str] = flag(
        [], "Column to run (a data set or an aspect). Default: all. Repeatable."
    )
    arm: list[str] = flag([], "Row to run. Default: all. Repeatable.")
    output: Path | None = flag(
        None,
        "Folder of the results. Default: paper-NAME.",
        "-o",
        "--output",
        metavar="FOLDER",
    )
    seeds: str | None = flag(
        None, "Number of seeds, or the seeds themselves (1,2,5).", metavar="N|A,B,…"
    )
    train: str | None = flag(None, "Number of labels to learn from.", metavar="N|all")
    heldout: str | None = flag(None, "Share or number of held-out rows.")
    rows: int | None = flag(
        None,
        "Number of rows to judge, from the first, in tables without training (subsets, spans). Default: all.",
        ge=2,
    )
    max_calls: int | None = flag(
        None,
        "Maximum number of calls to compile one cell, or to judge one column of subsets or spans.",
        ge=1,
    )
    dry_run: bool = flag(
        False, "Print the number of calls and the estimated cost, and stop."
    )
    overwrite: bool = flag(False, "Start over instead of resuming.")

    @classmethod
    def catalogue(cls, given: Mapping[str, Any]) -> Catalogue:
        """Return the settings that the table's arms may have."""
        from judgesmith.experiments.studies.config import catalogue

        return catalogue()

    @classmethod
    def start(cls, given: Mapping[str, Any]) -> int:
        """Start the studies, which look settings up themselves: some mean something to a part of the arms only."""
        own = {name: value for name, value in given.items() if name in cls.model_fields}
        command = read_options(
            cls, {"lm": os.environ.get("JUDGESMITH_LM")} | own, "judgesmith study paper"
        )
        return command.work(
            {name: value for name, value in given.items() if name not in own}
        )

    @property
    def folder(self) -> Path:
        """Return the folder for the results: --output, or paper-TABLE."""
        from judgesmith.experiments.studies.papers.table import slug

        return self.output or Path(f"paper-{slug(self.table or '')}")

    def work(self, settings: dict[str, Any]) -> int:
        """Run the table's studies and write the joined table.

        Args:
            settings: Settings of `judgesmith compile`, for all arms.
        """
        from judgesmith.experiments.studies.papers import table as papers
        from judgesmith.running.opening import quiet

        if self.table is None:
            return self._list()
        table = papers.read(self.table)
        if unknown := [name for name in self.column if name not in table.columns]:
            raise OptionError(
                f"--column {unknown[0]!r}: {self.table} has {', '.join(table.columns)}"
            )
        columns = self.column or list(table.columns)
        with quiet():
            if table.kind == "aspects":
                return self._finish(papers.rows_of(self.table, table, self.column), [])
            if table.kind == "study":
                return self._studies(table, columns, settings)
            return self._annotations(table, columns, settings)

    def _list(self) -> int:
        """The tables there are."""
        from judgesmith.experiments.studies.papers import table as papers
        from judgesmith.running.console import out, print_json

        listed = [
            {"name": name, "about": papers.about(name)} for name in papers.names()
        ]
        if self.as_json:
            print_json({"tables": listed})
        for one in [] if self.as_json else listed:
            out.print(
                f"{one['name']:28} {one['about']}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
        return 0

    def _annotations(
        self, table: PaperTable, columns: list[str], settings: dict[str, Any]
    ) -> int:
        """Columns whose rows an ensemble annotates once."""
        from judgesmith.experiments.studies.papers import annotating
        from judgesmith.programs.models.lm import Connection
        from judgesmith.running.console import out
        from judgesmith.running.journal import alone

        request = annotating.AnnotationRequest(
            self.lm or "", tuple(self.annotator), self.rows, self.max_calls, settings
        )
        if not self.dry_run:
            where = Connection(api_base=self.api_base)
            with alone(self.folder, folder=True):
                return self._finish(
                    annotating.joined(
                        self.table or "", table, columns, request, self.folder, where
                    ),
                    [],
                )
        plans = []
        for column in columns:
            labels = request.labels(table, column)
            plans.append(
                {
                    "column": column,
                    "calls": len(labels)
                    * request.judge(table, column, labels.scale)
                    .method.cost()
                    .calls_per_row,
                }
            )
        for plan in [] if self.as_json else plans:
            out.print(
                f"{plan['column']}: at most {plan['calls']:,} calls",
                markup=False,
                highlight=False,
            )
        return self._planned(plans)

    def _studies(
        self, table: PaperTable, columns: list[str], settings: dict[str, Any]
    ) -> int:
        """Every column's study, then the joined table."""
        from judgesmith.experiments.studies import running as studies
        from judgesmith.experiments.studies.papers import table as papers
        from judgesmith.experiments.studies.run import Study
        from judgesmith.running.journal import alone

        if self.rows:
            raise OptionError(
                f"--rows: {self.table} learns from rows; give --train and --heldout"
            )
        flags = {
            "lm": self.lm,
            "arms": self._arms(table),
            "seeds": self.seeds,
            "train": self.train,
            "heldout": self.heldout,
            "max_calls": self.max_calls,
            "api_base": self.api_base,
            **settings,
            **self._ensemble(table),
        }
        plans: list[dict[str, Any]] = []
        result: dict[str, Analysis] = {}
        failures: list[str] = []
        with ExitStack() as stack:
            if self.dry_run:
                place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            else:
                place = self.folder
            prepared = {
                column: papers.given_for(
                    table, column, flags, place / papers.slug(column)
                )
                for column in columns
            }
            where = prepared[columns[0]].connection()
            prepared_studies = {
                column: Study.prepare(request) for column, request in prepared.items()
            }
            if not self.dry_run:
                stack.enter_context(alone(self.folder, folder=True))
            for column, one in prepared_studies.items():
                if self.dry_run:
                    plans.append({"column": column, **studies.plan_of(one, where)})
                    if not self.as_json:
                        studies.show_plan(one, where, column)
                    continue
                result[column], _, _ = studies.run_one(
                    one,
                    self.folder / papers.slug(column),
                    where,
                    overwrite=self.overwrite,
                    heading=None if self.as_json else column,
                )
                failures += [
                    f"{column}: {cell}: {reason}"
                    for cell, reason in result[column].failures
                ]
        if self.dry_run:
            return self._planned(plans)
        return self._finish(papers.table_of(self.table or "", table, result), failures)

    def _arms(self, table: PaperTable) -> list[Any] | None:
        """The chosen arms of the preset, None for all of them."""
        from judgesmith.presets import read

        if not self.arm:
            return None
        arms = {
            arm["name"] if isinstance(arm, dict) else arm: arm
            for arm in read(table.preset)["arms"]
        }
        if unknown := [name for name in self.arm if name not in arms]:
            raise OptionError(f"--arm {unknown[0]!r}: the rows are {', '.join(arms)}")
        return [arms[name] for name in self.arm]

    def _ensemble(self, table: PaperTable) -> dict[str, Any]:
        """OpeNLGauge's annotators: a model that was named annotates alone."""
        if table.preset.startswith("openlgauge"):
            return {"annotators": self.annotator} if self.lm or self.annotator else {}
        if self.annotator:
            raise OptionError(f"--annotator: {self.table} has no ensemble")
        return {}

    def _planned(self, plans: list[dict[str, Any]]) -> int:
        from judgesmith.running.console import print_json

        if self.as_json:
            calls = sum(plan["calls"] for plan in plans)
            print_json(
                {"dry_run": True, "table": self.table, "columns": plans, "calls": calls}
            )
        return 0

    def _finish(self, joined: Joined, failures: list[str]) -> int:
        """Write and show the joined table."""
        from judgesmith.experiments.studies.papers import table as papers
        from judgesmith.running.console import out, print_json
        from judgesmith.running.plain import clean

        written = papers.write(joined, self.folder)
        if self.as_json:
            rows = [row.to_dict() for row in joined.rows]
            print_json(
                {
                    "table": joined.name,
                    "output": str(self.folder),
                    "columns": list(joined.columns),
                    "rows": rows,
                    "notes": list(joined.notes),
                    "failures": failures,
                }
            )
            return int(bool(failures))
        papers.shown(joined).show(out)
        for note in joined.notes:
            out.print(f"note: {clean(note)}", style="dim", markup=False)
        for failure in failures[:6]:
            out.print(f"failed: {clean(failure)}", style="red", markup=False)
        names = ", ".join(path.name for path in written)
        out.print(
            f"Wrote {clean(str(self.folder))}: {names}", markup=False, soft_wrap=True
        )
        return int(bool(failures))
