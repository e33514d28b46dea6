"""`judgesmith study replay`: gains from choosing and averaging prompts, on recorded answers."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesmith.cli.commands import Command, Json, argument, flag

if TYPE_CHECKING:
    from judgesmith.experiments.studies.replay import Outcome

#: What the tables compare: the rule, the one that it is compared with, and the number of labels of single columns.
AT = 40
RANDOM = "one at random"
ALL = "mean of all"
LITTLE = "all, weighed a little"
CHOSEN = "chosen by Q"
HINDSIGHT = ("the best in hindsight",)
PAIRS = (
    (CHOSEN, "chosen by closeness"),
    (CHOSEN, "chosen by Pearson"),
    ("chosen by Q, surely", CHOSEN),
    (ALL, CHOSEN),
    (ALL, "the best in hindsight"),
    (ALL, "mean of all, percents as they are"),
    (LITTLE, ALL),
    ("all, weighed by labels", ALL),
)
INTERVAL = "{:+.3f} [{:+.3f}, {:+.3f}]"


class Replay(Command, Json):
    """Compare choosing one prompt by labels with averaging all prompts, on recorded answers.

    SETS.yaml lists data sets with the columns of `panels` (prompts of one model) and `juries` (several models). Its
    paths are relative to it or to JUDGESMITH_DATA. Half of the documents are held out. The rules of `compile` choose
    and average by labelled rows of the other half. No model is called. The folder -o has the outcomes, and the same
    command resumes there.
    """

    sets: Path | None = argument(
        None,
        "YAML file of data sets with recorded answers. Default: the public ones.",
        "SETS.yaml",
    )
    draws: int = flag(
        200, "Number of draws of labels and held-out documents for every task.", ge=1
    )
    output: Path = flag(
        Path("replay"), "Folder of the results.", "-o", "--output", metavar="FOLDER"
    )

    def run(self) -> None:
        """Play all sets, then write and print the tables."""
        from judgesmith.experiments.studies.replay import read_sets, replay, tasks_of
        from judgesmith.experiments.studies.saving import save_all, shown
        from judgesmith.running.console import Watch, out, print_json, wide

        sets = read_sets(self.sets)
        tasks = [task for spec in sets for task in tasks_of(spec, self.sets)]
        self.output.mkdir(parents=True, exist_ok=True)
        with Watch("replaying", len(tasks) * self.draws) as watch:
            outcomes = replay(tasks, self.draws, watch, self.output / "outcomes.jsonl")
        tables = tables_of(outcomes, {spec.family for spec in sets if spec.contrast})
        command = f"judgesmith study replay{f' {self.sets.name}' if self.sets else ''} --draws {self.draws}"
        drawn = sorted({one.draws for one in outcomes})
        notes = f"{' to '.join(map(str, drawn[:: len(drawn) - 1 or 1]))} draws a task"
        save_all(self.output, tables, command, seed=0, notes=notes)
        if self.as_json:
            print_json(
                {
                    "output": str(self.output),
                    "tables": {name: rows for name, (_, rows) in tables.items()},
                }
            )
            return
        for name, (columns, rows) in tables.items():
            shown(name, columns, rows).show(wide())
        out.print(f"Wrote {self.output}", markup=False)


def tables_of(
    outcomes: list[Outcome], contrast: Collection[str] = ()
) -> dict[str, tuple[dict[str, str], list[list[Any]]]]:
    """Return columns with their formats, and rows, by the table's name.

    Args:
        outcomes: The outcomes of all tasks.
        contrast: Families that are also left out.
    """
    panels = [one for one in outcomes if one.kind == "panel"]
    juries = [one for one in outcomes if one.kind == "jury"]
    return {
        "replay-choosing": _choosing(panels, contrast),
        "replay-compared": _compared(panels),
        "replay-families": _families(panels),
        "replay-models": _models(panels),
        "replay-juries": _juries(juries),
    }


def _choosing(
    panels: list[Outcome], contrast: Collection[str]
) -> tuple[dict[str, str], list[list[Any]]]:
    from judgesmith.experiments.studies.replay import SIZES, gain, level, rules_of

    columns = {"rule": "", f"Q, {AT} labels": "{:.3f}"}
    columns |= {f"{size} labels": INTERVAL for size in SIZES} | {
        f"{AT}, over families": INTERVAL
    }
    others = [one for one in panels if one.family not in contrast]
    columns |= (
        {f"{AT}, without {' and '.join(sorted(contrast))}": INTERVAL}
        if contrast
        else {}
    )
    rows: list[list[Any]] = []
    for rule in [rule for rule in rules_of(panels) if rule != RANDOM]:
        gains = [gain(panels, size, rule, RANDOM, by=_cluster) for size in SIZES]
        gains.append(gain(panels, AT, rule, RANDOM, by=_family))
        gains += [gain(others, AT, rule, RANDOM, by=_cluster)] if contrast else []
        reached = level(panels, AT, rule, by=_cluster)
        rows.append([rule, reached, *([one.value, one.low, one.high] for one in gains)])
    return columns, rows


def _compared(panels: list[Outcome]) -> tuple[dict[str, str], list[list[Any]]]:
    from judgesmith.experiments.studies.replay import SIZES, gain

    columns = {"rule": "", "less": ""} | {f"{size} labels": INTERVAL for size in SIZES}
    rows: list[list[Any]] = []
    for rule, other in PAIRS:
        gains = [gain(panels, size, rule, other, by=_cluster) for size in SIZES]
        rows.append([rule, other, *([one.value, one.low, one.high] for one in gains)])
    return columns, rows


def _families(panels: list[Outcome]) -> tuple[dict[str, str], list[list[Any]]]:
    from judgesmith.experiments.studies.replay import gain

    pairs = (
        (CHOSEN, RANDOM),
        ("mean of 3 at random", RANDOM),
        (ALL, RANDOM),
        (LITTLE, RANDOM),
        *PAIRS,
    )
    columns = {"set": "", "models": "{:.0f}"} | {
        f"{rule} − {other}": "{:+.3f}" for rule, other in pairs
    }
    rows: list[list[Any]] = []
    for family in dict.fromkeys(one.family for one in panels):
        some = [one for one in panels if one.family == family]
        gains = [gain(some, AT, *pair, by=_cluster).value for pair in pairs]
        rows.append([family, len({one.model for one in some}), *gains])
    return columns, rows


def _models(panels: list[Outcome]) -> tuple[dict[str, str], list[list[Any]]]:
    from judgesmith.experiments.studies.replay import level

    compared = (
        "chosen by closeness",
        CHOSEN,
        "mean of 2 at random",
        "mean of 3 at random",
        ALL,
        LITTLE,
    )
    columns = {
        "set": "",
        "model": "",
        "prompts": "{:.0f}",
        "aspects": "{:.0f}",
        RANDOM: "{:.2f}",
    }
    columns |= {"the best in hindsight": "{:.2f}"} | dict.fromkeys(compared, "{:+.2f}")
    rows: list[list[Any]] = []
    for cluster in dict.fromkeys(one.cluster for one in panels):
        some = [one for one in panels if one.cluster == cluster]
        reached = {
            rule: level(some, AT, rule, by=_cluster)
            for rule in (RANDOM, *HINDSIGHT, *compared)
        }
        first = some[0]
        base = reached[RANDOM]
        row = [
            first.family,
            first.model,
            first.candidates,
            len(some),
            base,
            reached[HINDSIGHT[0]],
        ]
        rows.append([*row, *(reached[rule] - base for rule in compared)])
    return columns, rows


def _juries(juries: list[Outcome]) -> tuple[dict[str, str], list[list[Any]]]:
    from judgesmith.experiments.studies.replay import level

    rules = (
        RANDOM,
        "the best in hindsight",
        CHOSEN,
        ALL,
        LITTLE,
        "all, weighed by labels",
    )
    sizes = (20, AT, 160)
    columns = {"set": "", "jury": "", "aspects": "{:.0f}"}
    columns |= {
        f"{rule}, {size}" if rule in rules[2:] else rule: "{:.2f}"
        for size, rule in _cells(sizes, rules)
    }
    rows: list[list[Any]] = []
    for cluster in dict.fromkeys(one.cluster for one in juries):
        some = [one for one in juries if one.cluster == cluster]
        cells = [
            level(some, size, rule, by=_cluster) for size, rule in _cells(sizes, rules)
        ]
        rows.append([some[0].family, some[0].model, len(some), *cells])
    return columns, rows


def _cluster(one: Outcome) -> str:
    return one.cluster


def _family(one: Outcome) -> str:
    return one.family


def _cells(sizes: tuple[int, ...], rules: tuple[str, ...]) -> list[tuple[int, str]]:
    """Return the columns of a table: rules without labels once, the others for every number of labels."""
    return [(AT, rule) for rule in rules[:2]] + [
        (size, rule) for rule in rules[2:] for size in sizes
    ]
