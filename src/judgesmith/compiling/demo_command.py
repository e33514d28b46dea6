"""`judgesmith demo`: see it work."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from rich.markup import escape

from judgesmith.cli.commands import Command, Json, flag


class Demo(Command, Json):
    """Compile and try a judge on a small built-in example.

    The demo learns from 48 labelled sentences with a small local model, scores new ones, and writes a report. It takes
    one to three minutes on two cores.
    """

    example: ClassVar[str] = "judgesmith demo"

    output: Path = flag(
        Path("demo-judge.json"), "File of the saved judge.", "-o", "--output"
    )
    lm: str = flag(
        "local/smollm2-135m",
        "Language model to use: a LiteLLM name, local/NAME or gguf:PATH.",
    )

    def run(self) -> int:
        """Compile the demonstration's judge, score new sentences and write the report."""
        from importlib.resources import as_file, files

        from judgesmith.compiling.command import compile_judge
        from judgesmith.compiling.run import READ, CompileRun, Setup
        from judgesmith.running.console import out

        with as_file(files("judgesmith.datasets.demo")) as folder:
            if not self.as_json:
                out.print(
                    "[bold]48 simplified sentences[/bold], written and rated 1-5 (is it fluent?) by the makers of "
                    "judgesmith for this demo (see datasets/demo/CARD.md): demonstration ratings, no benchmark."
                )
            setup = Setup.choose(None, None, self.lm)
            chosen = setup.resolve()
            run = CompileRun.of(
                setup,
                chosen,
                labels=folder / "labels.jsonl",
                lm=self.lm,
                output=self.output,
                scale=(1, 5),
                library_aspect="simplification/fluency"
                if setup.method == READ
                else None,
            )
            code = compile_judge(run, as_json=self.as_json)
            if self.as_json or code:
                return code
            scored = _score(folder / "new_outputs.jsonl", self.output, self.lm)
        judge = escape(str(self.output))
        if page := _page(scored, self.output.with_suffix(".html")):
            out.print(
                f"\nWrote the report of these rows: [bold]{escape(str(page))}[/bold]. Next:"
            )
        out.print(f"  judgesmith show {judge}    what the judge learnt", soft_wrap=True)
        out.print(
            f"  judgesmith score YOUR.jsonl --judge {judge}    new outputs scored and explained",
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
