"""`judgesmith demo`: see it work."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.markup import escape

from judgesmith.cli.commands import Command, Json, flag

#: The widest line of the demo: it is shown in the README as it is printed.
WIDTH = 80
#: The model of `--live`.
SMALL = "local/smollm2-135m"
#: The rows, after the judge that they name: `check` calls a judge by the file of its verdicts.
ROWS = "qwen.jsonl"


class Demo(Command, Json):
    """See check, compare and report at work, without a model.

    It takes two seconds and needs no key. The rows are 72 replies of a made-up help desk. The makers of judgesmith
    rated each pass or fail. The verdicts of a small model are recorded. The demo writes the rows to a file, so that
    its commands can be repeated.

    --live learns a judge from 48 rated sentences with a small local model (98 MB, fetched once). It scores new
    ones, and writes a report. That takes one to three minutes on two cores.
    """

    example: ClassVar[str] = "judgesmith demo"

    output: Path | None = flag(
        None,
        "File of the rows. Default: qwen.jsonl. With --live, file of the judge. Default: demo-judge.json.",
        "-o",
        "--output",
    )
    live: bool = flag(False, "Compile a judge and score with it.")
    lm: str | None = flag(
        None,
        "Language model of --live: a LiteLLM name, local/NAME or gguf:PATH. Default: local/smollm2-135m.",
    )

    def run(self) -> int:
        """Show the recorded rows, or compile a judge."""
        if self.live or self.lm is not None:
            judge = self.output or Path("demo-judge.json")
            return live(judge, self.lm or SMALL, as_json=self.as_json)
        from judgesmith.running.console import out, print_json

        shown = recorded(self.output or Path(ROWS))
        if self.as_json:
            print_json(shown.to_dict())
        else:
            for line in shown.lines():
                out.print(line, markup=False, highlight=False, soft_wrap=True)
        return 0


@dataclass(frozen=True, slots=True)
class Shown:
    """What the three commands say of the recorded rows."""

    rows: Path
    page: Path
    check: Any
    """The first answer of `check`."""
    compare: Any
    """The comparison of `compare`."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "rows": str(self.rows),
            "page": str(self.page),
            "check": self.check.to_dict(),
            "compare": str(self.compare),
        }

    def lines(self) -> Iterator[str]:
        """Yield the demo's output."""
        yield from _filled(
            "72 replies of a help desk, half by its version v1 and half by v2. We wrote them and rated each pass or "
            "fail. A model of 0.5B parameters (qwen) was asked whether each reply helps; its verdicts are recorded."
        )
        yield f"\n$ judgesmith check {self.rows}"
        yield from _filled(str(self.check))
        yield from _filled(" ".join(self.check.facts[:2]))
        yield f"\n$ judgesmith compare {self.rows}"
        yield from _filled(str(self.compare))
        yield from _filled(f"The judge alone: {self.compare.judge}.")
        yield f"\n$ judgesmith report {self.rows}"
        yield f"Wrote {self.page}: each reply with its verdict and our rating."
        yield "\nThe same commands take your own rows. And then:"
        yield "  judgesmith compile LABELS.csv --lm MODEL    a judge from your ratings"
        yield "  judgesmith demo --live                      that on a small model (98 MB)"


def _filled(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def recorded(rows: Path) -> Shown:
    """Write the recorded rows and their report, and return what `check` and `compare` say of them."""
    from importlib.resources import files

    from judgesmith.comparing.reading import Request, read_versions
    from judgesmith.comparing.run import Question, answer
    from judgesmith.evaluating.options import EvaluateOptions
    from judgesmith.evaluating.request import EvaluateRequest
    from judgesmith.evaluating.run import first_answers
    from judgesmith.pages import check_page, write_page
    from judgesmith.reports.rows import read_scored
    from judgesmith.reports.spans import render
    from judgesmith.running.opening import write_output

    text = (
        files("judgesmith.datasets.demo").joinpath("replies.jsonl").read_text("utf-8")
    )
    page = rows.with_suffix(".html")
    check_page(page, "-o", rows)
    write_output(rows, text)
    request = EvaluateRequest(sources=[str(rows)], options=EvaluateOptions())
    first, *_ = first_answers(request)
    versions = read_versions([str(rows)], [], Request())
    found, _ = answer(versions, Question())
    write_page(page, render(read_scored(rows)), "-o")
    return Shown(rows, page, first, found)


def live(judge: Path, lm: str, *, as_json: bool) -> int:
    """Compile the demonstration's judge, score new sentences and write the report."""
    from importlib.resources import as_file, files

    from judgesmith.compiling.command import compile_judge
    from judgesmith.compiling.run import READ, CompileRun, Setup
    from judgesmith.running.console import out

    with as_file(files("judgesmith.datasets.demo")) as folder:
        if not as_json:
            out.print(
                "[bold]48 simplified sentences[/bold], written and rated 1-5 (is it fluent?) by the makers of "
                "judgesmith for this demo (see datasets/demo/CARD.md): demonstration ratings, no benchmark."
            )
        setup = Setup.choose(None, None, lm)
        run = CompileRun(
            setup=setup,
            labels=folder / "labels.jsonl",
            lm=lm,
            output=judge,
            scale=(1, 5),
            library_aspect="simplification/fluency" if setup.method == READ else None,
        )
        code = compile_judge(run, as_json=as_json)
        if as_json or code:
            return code
        scored = _score(folder / "new_outputs.jsonl", judge, lm)
    name = escape(str(judge))
    if page := _page(scored, judge.with_suffix(".html")):
        out.print(
            f"\nWrote the report of these rows: [bold]{escape(str(page))}[/bold]. Next:"
        )
    out.print(f"  judgesmith show {name}    what the judge learnt", soft_wrap=True)
    out.print(
        f"  judgesmith score YOUR.jsonl --judge {name}    new outputs scored and explained",
        soft_wrap=True,
    )
    out.print(
        "  judgesmith compile YOUR-LABELS.csv --lm MODEL -o judge.json    a judge from your own ratings",
        soft_wrap=True,
    )
    return 0


def _score(rows: Path, judge_file: Path, lm: str) -> Path:
    """Judge new rows by the saved file, show the verdicts and write them; return the path of the scored file."""
    from judgesmith.cli.rendering import show_verdict
    from judgesmith.datasets.loading import iter_rows
    from judgesmith.running.console import Watch, out
    from judgesmith.running.opening import open_judge, quiet
    from judgesmith.scoring.scoring import Run, score_file
    from judgesmith.signatures.values import Verdict

    scored = judge_file.with_suffix(".scored.jsonl")
    with quiet():
        judge = open_judge(judge_file, lm)
        with Watch("scoring") as watch:
            score_file(Run(judge, scored, watch=watch), rows, existing="overwrite")
        out.rule("New outputs, judged by the saved file")
        flagged = []
        for row, record in iter_rows(scored):
            # The row says more than a verdict: its aspect, the judge's contract.
            values = record["verdict"].items()
            verdict = Verdict.model_validate(
                {name: value for name, value in values if name in Verdict.model_fields}
            )
            show_verdict(row.id, row.output, verdict, str(judge.scale))
            if verdict.suspicious:
                flagged.append(row.id)
        if flagged:
            out.print(
                f"\n[yellow]{', '.join(map(escape, flagged))} addresses the judge: it was judged with and without "
                "what asks for a score, and is flagged for a person to look at.[/yellow]"
            )
    return scored


def _page(scored: Path, page: Path) -> Path | None:
    """Write the report of scored rows; None where the room of reports is not installed."""
    from judgesmith.parts import offers
    from judgesmith.programs.atomic import write_whole
    from judgesmith.running.opening import quiet

    for point in offers("judgesmith.pages"):
        if point.name == "report":
            with quiet():
                write_whole(page, point.load()(scored))
            return page
    return None
