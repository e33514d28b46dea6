"""`judgesmith browse`: a folder of judges and runs as one page, or as one that follows its files."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import ClassVar

from judgesmith.cli.commands import Command, Json, argument, flag
from judgesmith.errors import OptionError


class Browse(Command, Json):
    """Show a folder's judges, labels, scored files and studies on one page.

    The page has agreement, cost, lineage and changes. --watch serves it to this machine and updates it when files
    change. It then links numbers to their rows and compares two judges side by side. Ctrl-C ends it. No model is
    called, and no code from a file is run. Unreadable files are listed with the reason.
    """

    hidden: ClassVar[bool] = True

    folder: Path = argument(Path(), "Folder to show, with its subfolders.")
    output: Path | None = flag(
        None,
        "Self-contained HTML file. Default: FOLDER/browse.html.",
        "-o",
        "--output",
    )
    watch: bool = flag(
        False,
        "Serve the page to this machine only, and update it when files change.",
    )
    port: int = flag(0, "Port of --watch. 0: any free port.", ge=0, le=65535)
    no_browser: bool = flag(
        False, "With --watch, print the address without opening a browser."
    )

    def run(self) -> None:
        """Write the page of a folder, or serve it."""
        if self.watch and (self.output or self.as_json):
            raise OptionError("--watch serves the page; leave --output and --json out")
        if not self.watch and (self.port or self.no_browser):
            raise OptionError("--port and --no-browser are for --watch; leave them out")
        self._serve() if self.watch else self._write()

    def _serve(self) -> None:
        from judgesmith.rooms.watching.live import serve
        from judgesmith.running.console import err

        def started(address: str) -> None:
            err.print(f"{self.folder} at {address}", markup=False, soft_wrap=True)
            err.print("The page follows the files; Ctrl-C ends it.")
            if not self.no_browser:
                webbrowser.open(address)

        serve(self.folder, self.port, started)

    def _write(self) -> None:
        from judgesmith.pages import check_page, write_page
        from judgesmith.rooms.watching.browsing import render
        from judgesmith.rooms.watching.folder import browse as look
        from judgesmith.running.console import err, out, print_json
        from judgesmith.running.opening import quiet
        from judgesmith.running.plain import clean

        target = self.output or self.folder / "browse.html"
        check_page(target, "-o")
        with quiet():
            contents = look(self.folder)
            write_page(target, render(contents, target), "-o")
        counts = {
            "judges": len(contents.judges),
            "scored": len(contents.scored),
            "studies": len(contents.studies),
        }
        counts |= {"labels": len(contents.labels), "watched": len(contents.watched)}
        if self.as_json:
            damaged = [
                {"file": path, "reason": reason} for path, reason in contents.damaged
            ]
            print_json(
                {"output": str(target)}
                | counts
                | {"damaged": damaged, "notes": contents.notes}
            )
            return
        for path, reason in contents.damaged:
            err.print(
                f"damaged: {clean(path)}: {clean(reason)}",
                style="yellow",
                markup=False,
                soft_wrap=True,
            )
        text = ", ".join(f"{name}: {n}" for name, n in counts.items()).replace(
            "scored", "scored files"
        )
        out.print(
            f"Wrote {clean(str(target))}; {text}, damaged: {len(contents.damaged)}",
            markup=False,
            soft_wrap=True,
        )
