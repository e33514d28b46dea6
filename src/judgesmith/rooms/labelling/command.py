"""`judgesmith label`: people label rows on a page of this machine."""

from __future__ import annotations

import math
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import field_validator

from judgesmith.cli.commands import Command, Json, Rows, argument, flag
from judgesmith.errors import OptionError
from judgesmith.rooms.labelling.request import LabelRequest, Order
from judgesmith.tables import Cell, Column, Table, with_interval

if TYPE_CHECKING:
    from judgesmith.rooms.labelling.run import LabelSession


class Label(Command, Rows, Json):
    """Label rows by keyboard on a page in the browser.

    Ctrl-C ends it. The page is served to this machine only. Every answer is saved at once in one SQLite file. Run
    the same command to continue. Several tabs and raters can work at the same time. The exported file compiles
    without options: judgesmith compile labels.jsonl
    """

    example: ClassVar[str] = (
        "judgesmith label outputs.jsonl --n 40 --export labels.jsonl"
    )
    everyday: ClassVar[tuple[str, ...]] = (
        "kind",
        "scale",
        "categories",
        "aspect",
        "guidelines",
        "why",
        "n",
        "order",
        "repeats",
        "export",
        "export_only",
        "columns",
    )

    rows: str | None = argument(None, "Rows to label: {formats}.", "ROWS")
    kind: str | None = flag(
        None,
        "Kind of labels: score, category, binary (pass or fail), preference (A or B) or spans (error spans). "
        "Default: score.",
        metavar="KIND",
    )
    scale: tuple[float, float] | None = flag(
        None, "Worst and best score. Default: 1 5.", metavar="LOW HIGH"
    )
    categories: str | None = flag(
        None, "Categories, worst first: bad,ok,good.", metavar="WORDS"
    )
    aspect: list[str] = flag(
        [],
        "Aspect to rate, e.g. coherence. Repeat for several questions.",
        metavar="NAME",
    )
    why: bool = flag(
        False, "Require a reason with every answer. Otherwise reasons are optional."
    )
    guidelines: Path | None = flag(
        None, "Text file to show beside every row.", metavar="FILE"
    )
    rater: str | None = flag(None, "Name of the rater. Default: entered on the page.")
    store: Path | None = flag(
        None,
        "SQLite file of the answers. Default: ROWS.labels.sqlite in this folder.",
        metavar="FILE",
    )
    export: Path | None = flag(
        None,
        "JSON-lines file to write the labels to at the end, one line per rater and row.",
        metavar="FILE",
    )
    export_only: bool = flag(
        False,
        "Print the agreement of the raters and write --export, without opening the page.",
    )
    n: int | None = flag(
        None,
        "Number of rows to label. A larger number in a later run adds rows. Default: all.",
        "--n",
        ge=1,
    )
    order: Order | None = flag(
        None,
        "Order of the rows: file, random (for `estimate`), suggest (as `judgesmith suggest`), or decide (with the "
        "fewest labels for --decide). Default: file; with --decide the one that it needs.",
    )
    decide: str | None = flag(
        None,
        "Gate to decide, as of `check --fail-under`, such as 'tnr>=0.8'. The page says when the labels suffice.",
        metavar="GATE",
    )
    judge: str | None = flag(
        None,
        "Judge that --decide is about: a column of ROWS. Default: the verdicts of `judgesmith score`.",
        metavar="COLUMN",
    )
    chance: str | None = flag(
        None,
        "Draw rows with these probabilities, by the words of a column: gpt4:fail=1,pass=0.2. The labels keep them "
        "(label_chance), and `check`, `compare` and `estimate` weigh rows by them.",
        metavar="COLUMN:WORD=SHARE,…",
    )
    repeats: float | None = flag(
        None,
        "Share of rows (0 to 1) shown twice to each rater, to measure consistency. They come ten rows later, or at "
        "the end. Default: none.",
        metavar="SHARE",
    )
    settle: bool = flag(
        False,
        "Show the rows that split their raters, with everybody's answers, and take one decision for each. The export "
        "has it as settled_by beside the raters' labels; `compile` and `check` take it in place of their mean. Nothing "
        "is removed.",
    )
    seed: int = flag(0, "Random seed of the order, and of what --chance draws.")
    port: int = flag(
        0,
        "Port of the page. 0: that of the last run, or any free port.",
        ge=0,
        le=65535,
    )
    no_browser: bool = flag(False, "Print the address without opening a browser.")

    @field_validator("aspect", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    def request(self) -> LabelRequest:
        """Return the session that the options describe.

        Its store is beside ROWS unless named.

        Raises:
            OptionError: If options contradict each other.
        """
        if self.store is None and self.rows is None:
            raise OptionError(
                "give ROWS, or --store FILE of rows that were labelled before"
            )
        words = self.categories.split(",") if self.categories else []
        return LabelRequest(
            store=self.store
            or Path(Path(str(self.rows)).name).with_suffix(".labels.sqlite"),
            rows=self.rows,
            columns=self.roles(),
            kind=self.kind,
            scale=self.scale,
            categories=tuple(word.strip() for word in words),
            aspects=tuple(self.aspect),
            why=self.why,
            guidelines=self.guidelines,
            n=self.n,
            order=self.order,
            chance=self.chance,
            decide=self.decide,
            judge=self.judge,
            repeats=self.repeats,
            settle=self.settle,
            seed=self.seed,
        )

    def run(self) -> None:
        """Open the store and serve the page, or export the labels."""
        from judgesmith.rooms.labelling.export import check_export
        from judgesmith.rooms.labelling.run import open_store
        from judgesmith.running.console import err, out, print_json
        from judgesmith.running.plain import one_line

        if self.rows is None and not (self.export_only or self.settle):
            raise OptionError(
                "give ROWS to label, or --store FILE with --export-only or --settle for labels that are there"
            )
        opened = open_store(self.request())
        for note in opened.notes:
            err.print(one_line(f"note: {note}"), style="yellow", markup=False)
        if self.export is not None:
            check_export(self.export)
        if not self.export_only:
            self._serve(opened)
        result = opened.result(self.export)
        opened.store.close()
        if self.as_json:
            print_json(result)
            return
        lines = _summary(result)
        out.print(one_line(lines[0]), markup=False, soft_wrap=True)
        if result["raters"]:
            _raters(result).show(out)
        for line in lines[1:]:
            out.print(one_line(line), markup=False, soft_wrap=True)

    def _serve(self, opened: LabelSession) -> None:
        """Serve the page until it is ended."""
        from judgesmith.rooms.labelling.run import serve
        from judgesmith.running.console import err
        from judgesmith.running.plain import one_line

        def started(address: str) -> None:
            err.print(
                f"{'settling' if opened.settling else 'labelling'} {opened.rows} rows at {address}",
                markup=False,
                soft_wrap=True,
            )
            err.print(
                f"Kept in {one_line(str(opened.store.path))}; Ctrl-C ends it.",
                markup=False,
                soft_wrap=True,
            )
            if not self.no_browser:
                webbrowser.open(address)

        serve(opened, self.rater, started, self.port)


def _summary(result: dict[str, Any]) -> list[str]:
    """Return a summary in a few lines."""
    lines = [
        f"{result['labels']} labels on {result['rows']} rows, kept in {result['store']}"
    ]
    for one in result["raters"]:
        for beside in one["beside"]:
            if beside["doubt"]:
                lines.append(f"  {beside['doubt']}")
    for one in result["agreement"]:
        if one["rows"]:
            lines.append(
                f"  {one['question']}: {_agreement(one)} on {one['rows']} rows of {one['raters']} raters"
            )
    if result["split_rows"]:
        settled = result["settled_rows"]
        lines.append(
            f"  raters split on {result['split_rows']} rows, {settled} of them settled (--json has them; --settle "
            "decides them)"
        )
    lines += result.get("decision", ())
    if "export" in result:
        lines.append(f"wrote {result['exported']} labels to {result['export']}")
    return lines


def _agreement(one: dict[str, Any]) -> str:
    from judgesmith.running.console import number

    if "f1" in one:
        return f"F1 of the marked characters {number(one['f1'])}, with severities {number(one['weighted_f1'])}"
    alpha = with_interval(_nan(one["alpha"]), _nan(one["low"]), _nan(one["high"]))
    return (
        f"Krippendorff's alpha (interval) {alpha}, equal answers {number(one['equal'])}"
    )


def _raters(result: dict[str, Any]) -> Table:
    """Return the raters beside each other, a line for each question."""
    several = len(result["agreement"]) > 1
    table = Table(
        [
            "rater",
            *(["question"] if several else []),
            Column("rated", "d"),
            Column("skipped", "d"),
            Column("mean", ".2f"),
            Column("above others", ".2f"),
            Column("r", ".2f"),
            "same twice",
        ],
        "Raters beside the mean of the others, on the same rows",
    )
    for one in result["raters"]:
        twice = f"{one['same']:.0%} of {one['twice']}" if one["twice"] else "–"
        for beside in one["beside"] or [dict.fromkeys(("question", *_FIGURES))]:
            lead, low, high = (_nan(beside[name]) for name in ("lead", "low", "high"))
            table.add(
                one["rater"],
                *([beside["question"]] if several else []),
                one["rated"],
                one["skipped"],
                _nan(beside["mean"]),
                Cell(lead, low, high),
                _nan(beside["r"]),
                twice,
            )
    return table


_FIGURES = ("mean", "lead", "low", "high", "r")


def _nan(value: float | None) -> float:
    return math.nan if value is None else value
