"""`judgesmith browse`: a folder of judges and runs as one page."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from ..cli.commands import Command, Json, argument, flag


class Browse(Command, Json):
    """Judges, watched judges, scored files and studies of a folder on one page: agreement, cost, lineage, changes.

    Calls no model and runs nothing that a file says. Files that cannot be read are listed with the reason.
    """

    hidden: ClassVar[bool] = True

    folder: Path = argument(Path(), "A folder; its subfolders are searched, too.")
    output: Path | None = flag(None, "One .html file, no network; default FOLDER/browse.html.", "-o", "--output")

    def run(self) -> None:
        from ..pages import check_page, write_page
        from ..running.console import err, out, print_json
        from ..running.opening import quiet
        from ..running.plain import clean
        from .browsing import render
        from .folder import browse as look

        target = self.output or self.folder / "browse.html"
        check_page(target, "-o")
        with quiet():
            contents = look(self.folder)
            write_page(target, render(contents, target), "-o")
        counts = {"judges": len(contents.judges), "scored": len(contents.scored), "studies": len(contents.studies)}
        counts |= {"watched": len(contents.watched)}
        if self.as_json:
            damaged = [{"file": path, "reason": reason} for path, reason in contents.damaged]
            print_json({"output": str(target)} | counts | {"damaged": damaged, "notes": contents.notes})
            return
        for path, reason in contents.damaged:
            err.print(f"damaged: {clean(path)}: {clean(reason)}", style="yellow", markup=False, soft_wrap=True)
        text = ", ".join(f"{name}: {n}" for name, n in counts.items()).replace("scored", "scored files")
        out.print(f"Wrote {clean(str(target))}; {text}, damaged: {len(contents.damaged)}", markup=False, soft_wrap=True)
