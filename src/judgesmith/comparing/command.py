"""`judgesmith compare`: is the new version better than the one before?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from judgesmith.cli.commands import Command, Json, Rows, Worded, argument, flag

if TYPE_CHECKING:
    from judgesmith.agreement.comparison import Comparison

DECIDED = 0
WORSE = 1
UNDECIDED = 3


class Compare(Command, Rows, Worded, Json):
    """Decide whether a new version is better than the one before.

    If the ratings do not decide, it says how many more would. Rows are outputs with a judge's scores, or
    comparisons of two outputs with its choice. A column says the version (system), or each version has a file, the
    base first. Both are compared on the inputs that they share. People's ratings of some rows decide, helped by the
    judge's scores of the others. Without ratings of the new version, the judge's scores count as far as they were
    right of rated versions.

    Exit codes: 0: better, or not worse by the margin; 1: worse; 3: undecided. With --fail-if-worse: 1 where it is
    worse, else 0.
    """

    example: ClassVar[str] = (
        "judgesmith compare old.scored.jsonl new.scored.jsonl --human rated.csv"
    )
    everyday: ClassVar[tuple[str, ...]] = (
        "human",
        "judge",
        "base",
        "new",
        "aspect",
        "history",
        "keep",
        "margin",
        "unseen",
        "fail_if_worse",
        "output",
        "as_json",
    )

    files: list[str] = argument(
        ...,
        "Scored rows of both versions: one file, or one for each, the base first. bench/NAME is a benchmark.",
        "FILE...",
    )
    human: list[str] = flag(
        [],
        "Human ratings of some rows: a file (joined by id and output), or a column of FILES. Default: the column "
        "with a usual name. Repeatable.",
        metavar="FILE|COLUMN",
    )
    judge: str | None = flag(
        None,
        "Scores of the judge: a column or a path. Default: the verdicts of `judgesmith score`.",
        metavar="COLUMN",
    )
    base: str = flag(
        "", "Version to compare with. Default: the first of two.", metavar="NAME"
    )
    new: str = flag("", "New version. Default: the second of two.", metavar="NAME")
    aspect: str | None = flag(
        None, "Name of the human rating. Required if there are several."
    )
    history: list[Path] = flag(
        [],
        "Earlier versions with ratings: a file that --keep wrote, or scored rows with ratings. Repeatable.",
        metavar="FILE",
    )
    keep: Path | None = flag(
        None,
        "File of rated versions (.jsonl), to which those of FILES are added, without texts.",
        metavar="FILE",
    )
    margin: float | None = flag(
        None,
        "Smallest difference that matters, on the scale of the ratings. A smaller one counts as none.",
        gt=0,
    )
    level: float = flag(
        0.05,
        "Probability of finding a difference where there is none, between 0 and 1.",
        gt=0,
        lt=1,
    )
    looks: int = flag(
        1,
        "Number of looks, such as one for each commit. The level is shared over them.",
        ge=1,
    )
    candidates: int = flag(
        1,
        "Number of versions of which this judge chose the new one: the level is shared over them, too.",
        ge=1,
    )
    fail_if_worse: bool = flag(
        False,
        "Exit with 1 for a worse version, else with 0. Without ratings, the judge's own scores count.",
    )
    unseen: bool = flag(
        False, "Leave out the ratings that the judge was compiled from."
    )
    output: Path | None = flag(None, "Self-contained HTML page.", "-o", "--output")

    def run(self) -> int:
        """Compare, print the answer, and return the exit code."""
        from judgesmith.comparing.page import render
        from judgesmith.comparing.reading import Request, read_versions
        from judgesmith.comparing.run import Question, about, answer, keep_versions
        from judgesmith.comparing.telling import show
        from judgesmith.pages import check_page, write_page
        from judgesmith.running.console import print_json

        if self.output is not None:
            check_page(self.output, "-o")
        request = Request(
            self.human, self.judge, self.aspect, self.roles(), self.orders()
        )
        versions = read_versions(self.files, self.history, request)
        question = Question(
            self.base,
            self.new,
            self.level,
            self.looks,
            self.candidates,
            self.margin,
            self.unseen,
        )
        found, notes = answer(versions, question)
        code = self.code(found)
        if self.keep is not None:
            kept = keep_versions(self.keep, versions)
            notes.append(f"{self.keep.name} holds {kept} answers of rated versions")
        if self.output is not None:
            write_page(self.output, render(found, versions, notes), "-o")
        if self.as_json:
            print_json(about(found, versions, notes) | {"exit_code": code})
        else:
            show(found, versions, notes, gate=self.fail_if_worse)
        return code

    def code(self, found: Comparison) -> int:
        """Return the exit code."""
        from judgesmith.comparing.run import worse

        if self.fail_if_worse:
            return WORSE if worse(found) else DECIDED
        if found.verdict == "undecided":
            return UNDECIDED
        return WORSE if found.verdict == "worse" else DECIDED
