"""`judgesmith suggest`: which rows should people label next?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from judgesmith.cli.commands import Command, Json, Rows, Worded, argument, flag
from judgesmith.errors import OptionError

if TYPE_CHECKING:
    from judgesmith.agreement.correlation import Vector
    from judgesmith.evaluating.few import Scored


class Suggest(Command, Rows, Worded, Json):
    """Suggest which rows to label next.

    The rows cover documents, systems and scores evenly, with slightly more rows on which judges disagree. Rows unlike
    all others come last. Use it to compile a judge. For `estimate`, draw rows at random instead.
    """

    example: ClassVar[str] = "judgesmith suggest scored.jsonl --labels labels.csv"

    rows: str = argument(
        ..., "Rows to choose from, ideally an output file of `judgesmith score`."
    )
    labels: list[str] = flag(
        [],
        "File of existing labels, joined by id. Repeatable.",
        metavar="FILE",
    )
    n: int = flag(10, "Number of rows to suggest.", "--n", "-n", ge=1)
    judge: list[str] = flag(
        [],
        "Score of each row: a column, a path, or a name in SET.metrics.jsonl. Default: the verdicts, else length, "
        "overlap with the source, and repetition. Repeatable.",
        metavar="COLUMN",
    )
    purpose: Literal["compile", "agreement"] = flag(
        "compile",
        "Use of the labels. compile: the most informative rows for `judgesmith compile`. agreement: a sample that "
        "estimates a judge's agreement from few labels (Metric Match). It matches the agreement of the first --judge "
        "with the second.",
        "--for",
    )
    aspect: str | None = flag(
        None, "Name of the human rating to use. Required if there are several."
    )
    tasks: Path | None = flag(
        None,
        "JSON file to write the rows to, for --tool to import. A scored row has its verdict as prediction or "
        "suggestion. For Label Studio the labelling interface is written beside, as .xml.",
        metavar="FILE",
    )
    tool: Literal["label-studio", "argilla"] = flag(
        "label-studio", "Annotation tool that imports --tasks."
    )

    def run(self) -> None:
        """Print the rows to label, or write them to a file."""
        import numpy as np

        from judgesmith.evaluating.few import read_suggestable
        from judgesmith.rooms.labelling.suggestion import suggest
        from judgesmith.rooms.labelling.tasks import write_tasks
        from judgesmith.running.console import out, print_json
        from judgesmith.running.plain import one_line

        scored, readings = read_suggestable(
            self.rows,
            labels=self.labels,
            judges=self.judge,
            aspect=self.aspect,
            columns=self.roles(),
            orders=self.orders(),
        )
        if self.purpose == "agreement":
            self._matched(scored, readings)
            return
        suggestions = suggest(
            readings,
            self.n,
            human=scored.human,
            documents=scored.documents,
            systems=scored.systems,
        )
        told = []
        if self.tasks is not None:
            chosen_rows = [scored.rows[s.row] for s in suggestions]
            told = write_tasks(self.tasks, self.tool, chosen_rows, scored.rows)
        if self.as_json:
            chosen = [
                {"id": scored.rows[s.row].id, "row": scored.rows[s.row].line}
                | s.to_dict()
                for s in suggestions
            ]
            print_json(
                {
                    "ids": [one["id"] for one in chosen],
                    "suggestions": chosen,
                    "readings": list(readings),
                    "rows": len(scored.rows),
                    "labelled": int(np.isfinite(scored.human).sum()),
                    "notes": [*scored.notes, *told],
                }
            )
            return
        for s in suggestions:
            out.print(
                one_line(f"{scored.rows[s.row].id}  {s.why}"),
                markup=False,
                soft_wrap=True,
            )
        if len(suggestions) < self.n:
            out.print(
                f"{len(suggestions)} of {self.n}: no other row is without a label.",
                style="yellow",
            )
        out.print(
            "Give their labels a column chosen_by with the word suggest: agreement is measured on others."
        )
        for line in told:
            out.print(one_line(line), markup=False, soft_wrap=True)
        for note in scored.notes:
            out.print(one_line(f"note: {note}"), style="yellow", markup=False)

    def _matched(self, scored: Scored, readings: Mapping[str, Vector]) -> None:
        import numpy as np

        from judgesmith.rooms.labelling.matching import matched_rows
        from judgesmith.running.console import out, print_json
        from judgesmith.running.plain import one_line

        if len(self.judge) < 2:
            raise OptionError(
                "--for agreement needs two judges; pass --judge for the judge to check, and --judge for another one"
            )
        judge, stand_in = self.judge[:2]
        free = np.isnan(scored.human)
        places = matched_rows(readings[judge], readings[stand_in], self.n, free=free)
        ids = [scored.rows[place].id for place in places]
        if self.as_json:
            print_json(
                {
                    "ids": ids,
                    "judge": judge,
                    "stand_in": stand_in,
                    "rows": len(scored.rows),
                    "notes": scored.notes,
                }
            )
            return
        for name in ids:
            out.print(one_line(name), markup=False, soft_wrap=True)
        out.print(
            f"On these rows {judge} agrees with {stand_in} as on all {len(scored.rows)}; `check` them alone."
        )
        for note in scored.notes:
            out.print(one_line(f"note: {note}"), style="yellow", markup=False)
