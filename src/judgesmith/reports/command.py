"""`judgesmith report`: a scored file as a page to look at."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from judgesmith.cli.commands import Command, Json, Rows, Worded, argument, flag


class Report(Command, Rows, Worded, Json):
    """Show scored rows on a page, with errors marked and explanations.

    The page has filters. With human ratings, rows with the largest disagreement come first. The page is one
    self-contained file. Without JavaScript it shows the first rows. Keys: j, k, n, p, o and /.
    """

    example: ClassVar[str] = "judgesmith report scored.jsonl -o report.html"

    scored: Path = argument(..., "Output file of `judgesmith score` (.jsonl).")
    output: Path | None = flag(
        None,
        "Self-contained HTML file. Default: SCORED.html.",
        "-o",
        "--output",
    )
    human: str | None = flag(
        None,
        "Human rating to compare with: an aspect, a column or a path. Default: the column with a usual name.",
        metavar="COLUMN",
    )

    judge: Path | None = flag(
        None,
        "Saved judge that scored the rows: the page says how far it agrees with people. Default: as the rows tell.",
    )

    def run(self) -> None:
        """Read the scored file, and write the page or print its figures."""
        from judgesmith.pages import check_page, write_page
        from judgesmith.reports.rows import read_scored, summarise
        from judgesmith.reports.spans import render
        from judgesmith.running.console import err, out, print_json
        from judgesmith.running.plain import clean
        from judgesmith.running.trust import Trust

        target = self.output or self.scored.with_suffix(".html")
        check_page(target, "-o", self.scored)
        started = time.monotonic()
        data = read_scored(
            self.scored, human=self.human, columns=self.roles(), orders=self.orders()
        )
        if self.judge is not None:
            data = replace(data, trust=Trust.of_file(self.judge))
        size = write_page(target, render(data), "-o")
        sums = summarise(data)
        if self.as_json:
            seconds = round(time.monotonic() - started, 2)
            print_json(
                {"output": str(target)} | sums | {"bytes": size, "seconds": seconds}
            )
            return
        out.print(clean(data.trusted), markup=False, soft_wrap=True)
        for note in data.notes:
            err.print(f"note: {clean(note)}", style="yellow", markup=False)
        text = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
        done = f"rows: {sums['rows']}, without score: {sums['failures']}, errors: {sums['errors']}"
        out.print(
            f"Wrote {clean(str(target))} ({text}); {done}", markup=False, soft_wrap=True
        )
