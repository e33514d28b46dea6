"""`judgesmith study efficiency`: how much agreement labels buy, by whose method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesmith.cli.commands import Command, Json, argument, flag

if TYPE_CHECKING:
    from judgesmith.experiments.studies.efficiency import Mean, Part, Reached

#: The number of labels of single columns, and the way that others are compared with.
AT = 30
OURS = {"beside": "judgesmith beside the judge", "small": "judgesmith"}
INTERVAL = "{:.2f} [{:.2f}, {:.2f}]"
GAP = "{:+.2f} [{:+.2f}, {:+.2f}]"


class Efficiency(Command, Json):
    """Compare ways to judge with few labels, ours and others', on recorded answers of public sets.

    Labels are 0, 8, 30, 80 and 160; test rows are of other documents. Ways stand beside a judge whose scores were
    recorded, or have a small model's readings (--tables) or none. Q is given over all rows, within documents and within
    systems. No model is called. The folder -o has the results, and the same command resumes there.
    """

    sets: Path | None = argument(
        None,
        "YAML file of data sets with recorded answers. Default: the public ones.",
        "SETS.yaml",
    )
    tables: list[Path] = flag(
        [],
        "Folder of readings that `judgesmith study experience` kept. Repeatable. Default: readings in JUDGESMITH_DATA.",
        metavar="FOLDER",
    )
    draws: int = flag(10, "Number of splits and draws of labels for every task.", ge=1)
    output: Path = flag(
        Path("efficiency"), "Folder of the results.", "-o", "--output", metavar="FOLDER"
    )

    def run(self) -> None:
        """Measure what is missing, then write and print the tables."""
        from judgesmith.experiments.studies.efficiency import read_sets, run
        from judgesmith.experiments.studies.experience import located
        from judgesmith.experiments.studies.saving import save_all, shown
        from judgesmith.running.console import Watch, out, print_json, wide

        sets = read_sets(self.sets)
        folders = self.tables or [located("readings", self.sets)]
        self.output.mkdir(parents=True, exist_ok=True)
        tasks = sum(len(spec.aspects) for spec in sets)
        with Watch("measuring", 2 * tasks) as watch:
            journal = self.output / "reached.jsonl"
            found = run(sets, self.sets, folders, self.draws, journal, watch)
        tables = tables_of(found)
        command = f"judgesmith study efficiency --draws {self.draws} --tables TABLES"
        notes = f"{self.draws} splits a task; intervals over sets"
        save_all(self.output, tables, command, seed=0, notes=notes)
        if self.as_json:
            values = {name: rows for name, (_, rows) in tables.items()}
            print_json({"output": str(self.output), "tables": values})
            return
        columns, rows = tables["efficiency"]
        title = f"Q by the number of labels, {self.draws} splits"
        shown(title, columns, rows).show(wide())
        out.print(
            f"Wrote {self.output}; each task is in efficiency-sets.json", markup=False
        )


Columns = tuple[dict[str, str], list[list[Any]]]


def tables_of(found: Sequence[Reached]) -> dict[str, Columns]:
    """Return columns with their formats, and rows, by the table's name."""
    return {"efficiency": _means(found), "efficiency-sets": _by_set(found)}


def _means(found: Sequence[Reached]) -> Columns:
    """Return each way's mean over sets, by labels and level, and its distance from ours."""
    from judgesmith.experiments.studies.efficiency import (
        SIZES,
        over_sets,
        values_of,
    )

    columns = {"part": "", "way": "", "paper": "", "sets, tasks": "{:d}, {:d}"}
    columns |= {f"Q, {size}": "{:.2f}" for size in SIZES}
    columns |= {
        f"Q, {AT}, over sets": INTERVAL,
        f"within documents, {AT}": "{:.2f}",
        f"within systems, {AT}": "{:.2f}",
        f"less judgesmith, {AT}": GAP,
        "within systems, less judgesmith": GAP,
        f"worst, {AT}": "",
    }
    rows: list[list[Any]] = []
    for part, ways in _ways(found).items():
        ours = {
            level: values_of(found, part, OURS[part], AT, level)
            for level in ("pooled", "within")
        }
        for way in ways:
            own = values_of(found, part, way.name, AT, "pooled")
            inside = values_of(found, part, way.name, AT, "within")
            documents = values_of(found, part, way.name, AT, "sample")
            of = over_sets(own)
            by_size = []
            for size in SIZES:
                values = values_of(found, part, way.name, size, "pooled")
                by_size.append(over_sets(values).value)
            lowest = min(own, key=own.__getitem__, default="")
            rows.append(
                [
                    part,
                    way.name,
                    way.paper or "–",
                    [of.sets, len(own)],
                    *by_size,
                    _ends(of),
                    over_sets(documents).value,
                    over_sets(inside).value,
                    _gap(own, ours["pooled"], over_sets),
                    _gap(inside, ours["within"], over_sets),
                    f"{own[lowest]:.2f} {lowest}" if lowest else "–",
                ]
            )
    return columns, rows


def _by_set(found: Sequence[Reached]) -> Columns:
    """Return each task's Q with `AT` labels, a column a way."""
    from judgesmith.experiments.studies.efficiency import values_of

    rows: list[list[Any]] = []
    columns = {"part": "", "task": "", "way": "", f"Q, {AT}": "{:.2f}"}
    columns |= {"within documents": "{:.2f}", "within systems": "{:.2f}"}
    for part, ways in _ways(found).items():
        for way in ways:
            of = {
                level: values_of(found, part, way.name, AT, level)
                for level in ("pooled", "sample", "within")
            }
            for task, value in of["pooled"].items():
                rows.append(
                    [
                        part,
                        task,
                        way.name,
                        value,
                        of["sample"][task],
                        of["within"][task],
                    ]
                )
    return columns, rows


def _ways(found: Sequence[Reached]) -> dict[Part, list[Any]]:
    """Return the ways of each part that were measured, those with the highest mean first."""
    from judgesmith.experiments.studies.efficiency import PARTS, over_sets, values_of

    measured = {(one.part, one.way) for one in found}
    result: dict[Part, list[Any]] = {}
    for part, ways in PARTS.items():
        some = [way for way in ways if (part, way.name) in measured]
        reached = {
            way.name: over_sets(values_of(found, part, way.name, AT, "pooled")).value
            for way in some
        }
        order = sorted(reached, key=reached.__getitem__, reverse=True)
        by_name = {way.name: way for way in some}
        result[part] = [by_name[name] for name in order]
    return result


def _gap(own: Any, ours: Any, over_sets: Any) -> list[float] | None:
    """Return how far a way is ahead of ours, on the tasks of both; None of ours itself."""
    both = {task: own[task] - ours[task] for task in own if task in ours}
    if not any(both.values()):
        return None
    return _ends(over_sets(both))


def _ends(mean: Mean) -> list[float]:
    return [mean.value, mean.low, mean.high]
