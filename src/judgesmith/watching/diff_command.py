"""`judgesmith diff`: what changed between two judges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ..cli.commands import Command, Json, Reach, Rows, argument, flag
from ..errors import OptionError

if TYPE_CHECKING:
    from .judges import JudgeDiff
    from .scores import ScoreDiff

__all__ = ["Diff"]

#: Changes of one part that the table shows.
MOST_SHOWN = 12


class Diff(Command, Rows, Reach, Json):
    """What changed between two judges, and whether their scores may be compared.

    Of two saved judges: method, options, task, criteria, prompts, demonstrations, model, readings and head, scale,
    calibration, provenance. With --rows, or of two scored files of the same rows: how alike they order the rows, what
    flips, the mean difference, and the rows that moved most. Exit code, as of `diff`: 0 the same (provenance aside), 1
    different, 2 an error.
    """

    hidden: ClassVar[bool] = True

    a: str = argument(..., "A saved judge, or a file that it scored (.jsonl, .csv).", "A")
    b: str = argument(..., "Another one.", "B")
    rows: Path | None = flag(None, "Rows that both judges score now, to compare what they say.")
    limit: int | None = flag(None, "Only the first rows.", ge=1)
    seed: int = flag(0, "Random seed of the resampled documents.")

    def run(self) -> int:
        from ..programs import artifact
        from ..running.console import print_json
        from ..running.opening import quiet
        from .judges import compare_judges
        from .scores import compare_scores, read_scores

        a, b = self.a, self.b
        scored = [name.lower().removesuffix(".gz").endswith((".jsonl", ".csv")) for name in (a, b)]
        if any(scored) and (self.rows is not None or not all(scored)):
            raise OptionError(
                "give two saved judges (with --rows, to score rows by both), or two files that they scored"
            )
        found, judged = None, None
        with quiet():
            if all(scored):
                judged = compare_scores(*(read_scores(Path(x), self.roles()) for x in (a, b)), seed=self.seed)
            else:
                found = compare_judges(artifact.read(a), artifact.read(b))
            if self.rows is not None:
                judged = self._on_rows(self.rows)
        if self.as_json:
            data = {} if found is None else found.to_dict()
            print_json({"a_file": a, "b_file": b} | data | {"rows": judged and judged.to_dict()})
        else:
            if found is not None:
                _tell_judges(found, a, b)
            if judged is not None:
                _tell_scores(judged, a, b)
        same = (found is None or found.same) and (judged is None or judged.same)
        return 0 if same else 1

    def _on_rows(self, rows: Path) -> ScoreDiff:
        from ..evaluating.sources import read_file
        from ..running.console import Watch
        from ..running.opening import open_judge
        from .scores import compare_scores, judge_rows

        read = read_file(str(rows), self.roles(), self.limit).rows
        if not read:
            raise OptionError(f"{rows}: no row in it")
        files = (self.a, self.b)
        opened = [open_judge(Path(file), self.lm, self.connection()) for file in files]
        with Watch("scoring", 2 * len(read)) as watch:
            named = zip(files, opened, strict=True)
            scores = [judge_rows(Path(file).name, judge, read, watch) for file, judge in named]
        return compare_scores(*scores, seed=self.seed)


def _tell_judges(found: JudgeDiff, a: str, b: str) -> None:
    from ..running.console import out
    from ..tables import Table
    from .judges import shown

    table = Table(["part", a, b, "same?"], "The judges")
    marks, others = ({"fingerprint": one.fingerprint} | one.parts() for one in (found.a, found.b))
    for name, mark in marks.items():
        table.add(name, mark, others[name], "" if mark == others[name] else "differs")
    table.show(out)
    answer = "yes" if found.comparable.scores else "only" if found.comparable.order else "no"
    out.print(f"May their scores be compared? {answer}: {found.comparable.why}.", markup=False, soft_wrap=True)
    table = Table(["part", "what", a, b], "What changed")
    for part in dict.fromkeys(change.part for change in found.changes):
        own = [change for change in found.changes if change.part == part]
        for change in own[:MOST_SHOWN]:
            table.add(part, change.name, shown(change.before), shown(change.after))
        if len(own) > MOST_SHOWN:
            table.add(part, f"and {len(own) - MOST_SHOWN} more (--json)")
    if len(table):
        table.show(out)


def _tell_scores(found: ScoreDiff, a: str, b: str) -> None:
    from ..running.console import out
    from ..tables import Column, Table, interval, number, p_value

    failed = found.failed
    out.print(
        f"{found.rows} rows of both; {found.n} scored by both ({found.documents} documents), {found.equal} with the "
        f"same score; without a score: {failed['a']} only by {a}, {failed['b']} only by {b}, {failed['both']} by both.",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    table = Table(
        ["what", Column("value", "s"), "interval", "note"], f"{b} against {a} (95 % intervals over documents)"
    )
    for name, value in (("Spearman", found.spearman), ("Kendall tau-b", found.kendall)):
        table.add(name, number(value.value, 2), interval(value.low, value.high), value.reason or "")
    if (mean := found.difference) is not None:
        chance = f"p {p_value(mean.p)}" if mean.p == mean.p else ""
        table.add("mean difference", f"{mean.value:+.3g}", interval(mean.low, mean.high), chance)
    share = f"{found.reversed / found.pairs:.1%} of {found.pairs}" if found.pairs else ""
    table.add("pairs in the opposite order", str(found.reversed), "", share)
    if found.flips is not None:
        table.add("rows in another category", str(sum(found.flips.values())), "", f"of {found.n}")
        for (one, other), count in found.flips.items():
            table.add(f"{one} → {other}", str(count))
    table.show(out)
    moved = Table(["row", a, b, "output"], "The rows that moved most")
    for row in found.moved:
        before, after = f"{number(row.a, 2)} {row.category_a}", f"{number(row.b, 2)} {row.category_b}"
        moved.add(row.row.id, before.strip(), after.strip(), row.row.output[:80])
    if len(moved):
        moved.show(out)
    for note in found.notes:
        out.print(f"note: {note}", markup=False, style="yellow", soft_wrap=True)
