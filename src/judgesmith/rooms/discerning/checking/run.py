"""A run of `judgesmith discern --check`: what is asked, and what came out, as numbers; no printing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from judgesmith.agreement.correlation import Vector
from judgesmith.datasets.sheet import Outputs as File
from judgesmith.errors import OptionError
from judgesmith.evaluating.sources import read_file
from judgesmith.programs.models.lm import Connection, LanguageModel
from judgesmith.programs.readings.bindings.columns import Column
from judgesmith.rooms.discerning.checking.live import Live, prepared
from judgesmith.rooms.discerning.checking.recorded import (
    Recorded,
    read_column,
    read_recorded,
)
from judgesmith.rooms.discerning.checking.rows import (
    PLAIN,
    CheckOptions,
    Rows,
    is_column,
    item_of,
    leave_out,
    read_rows,
    recorded_columns,
    row_key,
)
from judgesmith.rooms.discerning.checking.statistics import (
    CHECKS,
    Lead,
    Resampling,
    Scored,
    Shift,
    chosen_checks,
    lead,
    leads,
    middle,
    own_systems,
    shift,
    sides_of,
)
from judgesmith.rooms.discerning.judging import Subject, Task, estimated, judge
from judgesmith.rooms.discerning.options import DiscernOptions
from judgesmith.rooms.discerning.pairs import Book
from judgesmith.running.estimates import Estimate

if TYPE_CHECKING:
    from judgesmith.running.limits import Limits


#: A check, a row's id, its scores before and after as shares of the scale, and the output that was scored after.
Move: TypeAlias = tuple[str, str, float, float, str]


@dataclass(frozen=True)
class Checked:
    """Results of the checks.

    left: check -> why it was not made. moves: (check, row's id, before, after, output), the largest first.
    """

    judge: str
    origin: str
    rows: int
    documents: int
    shifts: Sequence[Shift]
    own: Lead | None
    left: Mapping[str, str]
    bar: str
    moves: Sequence[Move]
    notes: Sequence[str]
    failed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "judge": self.judge,
            "origin": self.origin,
            "rows": self.rows,
            "documents": self.documents,
            "checks": [one.to_dict() for one in self.shifts],
            "own": self.own and self.own.to_dict(),
            "not_made": dict(self.left),
            "bar": self.bar,
            "notes": list(self.notes),
            "failed": self.failed,
        }


@dataclass
class Run:
    """A run: its rows, its judge, live or recorded, and what was chosen."""

    rows: Rows
    how: DiscernOptions
    more: CheckOptions
    wanted: Mapping[str, bool]
    file: File
    live: Live | None = None
    recorded: Recorded | None = None

    @classmethod
    def of(
        cls,
        target: str,
        source: str,
        checks: Sequence[str],
        roles: Mapping[str, Any],
        how: DiscernOptions,
        more: CheckOptions,
        opened: Callable[[], Subject],
        n: int,
    ) -> Run:
        """Everything before the first call. opened: opens a live judge. Raises OptionError, LabelsError."""
        wanted = chosen_checks(checks)
        given = recorded_columns(more)
        _refuse_unused(wanted, given, more)
        file = read_file(source, dict(roles), None)
        if is_column(target):
            every = read_rows(file, None, how.seed)
            scores = read_recorded(target, file, wanted, given)
            return cls(every, how, more, wanted, file, recorded=scores)._checked()
        if others := [check for check in given if check != "own"]:
            raise OptionError(
                f"--recorded {others[0]}=…: {target} is asked itself; name a column as the judge, or leave this out"
            )
        rows = read_rows(file, n, how.seed)
        live = prepared(opened(), rows, wanted, how, more)
        return cls(rows, how, more, wanted, file, live=live)._checked()

    def _checked(self) -> Run:
        """Return the run; own writing is left out where these rows say nothing of it. Raises OptionError."""
        if "own" in self.wanted and (reason := self._not_own()) is not None:
            left = self._source.left
            leave_out("own", reason, named=self.wanted["own"], left=left)
        return self

    @property
    def _source(self) -> Live | Recorded:
        """The judge that gives the scores."""
        source = self.live or self.recorded
        assert source is not None
        return source

    def book(self, output: Path | None, *, overwrite: bool) -> Book:
        """Return the scores that exist already."""
        keys = [row_key(item_of(row, self.how, {})) for row in self.rows.rows]
        digest = sha256("".join(keys).encode())
        settings = {
            "origin": self.rows.origin,
            "checks": list(self.wanted),
            "texts": digest.hexdigest()[:16],
            "seed": self.how.seed,
            "language": self.how.language,
        }
        return Book.open(output, settings, lambda: iter(()), overwrite=overwrite)

    @property
    def models(self) -> list[LanguageModel]:
        """The models to ask; none if the judge is recorded."""
        return [] if self.live is None else self.live.models

    def tasks(self, book: Book) -> list[Task]:
        """Return the tasks without a score."""
        return [] if self.live is None else self.live.tasks(book)

    def cost(self, tasks: Sequence[Task], where: Connection) -> Estimate:
        """Return the estimated cost, without calling a model."""
        if self.live is None:
            return Estimate(0, 0, 0, 0, 0.0, 0.0)
        return estimated(self.live.subject, tasks, where)

    def plan(self) -> dict[str, Any]:
        """Return the rows, checks and texts of a run."""
        counted: dict[str, int] = {}
        if self.live is not None:
            for check, items in self.live.items.items():
                counted[check] = sum(item is not None for item in items)
        return {
            "origin": self.rows.origin,
            "rows": len(self.rows.rows),
            "documents": len(set(self.rows.documents)),
            "checks": counted,
            "not_made": dict(self._source.left),
        }

    def in_words(self) -> list[str]:
        """Return the plan, a line each."""
        plan = self.plan()
        changed = [
            f"  {check}: {count} rows"
            for check, count in plan["checks"].items()
            if check != PLAIN
        ]
        left = [f"  {check} left out: {why}" for check, why in plan["not_made"].items()]
        head = (
            f"{plan['rows']} rows of {plan['documents']} documents of {plan['origin']}"
        )
        return [head, *changed, *left]

    def ask(
        self,
        tasks: Sequence[Task],
        book: Book,
        step: Callable[[], None],
        limits: Limits,
    ) -> None:
        """Judge the rows that lack a score."""
        if self.live is not None:
            judge(self.live.subject, tasks, book, step, limits)

    def result(self, book: Book) -> Checked:
        """Every check as numbers. Raises OptionError for one of systems that cannot be made."""
        source = self._source
        scores, categories, name = self._scores(book)
        plain = scores[PLAIN]
        bar, where = self._bar(plain, categories[PLAIN])
        resampled = Resampling(
            self.rows.documents, rounds=self.how.rounds, seed=self.how.seed
        )

        def sided(check: str) -> Scored:
            own = categories[check]
            sides = sides_of(scores[check], bar) if where else own
            return Scored(scores[check], sides)

        before = sided(PLAIN)
        shifts = [
            shift(check, before, sided(check), resampled)
            for check in CHECKS
            if check in scores
        ]
        left = dict(source.left)
        own = self._own(plain, resampled, left)
        return Checked(
            name,
            self.rows.origin,
            len(self.rows.rows),
            len(set(self.rows.documents)),
            shifts,
            own,
            left,
            where or "the judge's own categories",
            self._moves(scores),
            [note for note in source.notes if note],
            int(np.isnan(plain).sum()) if self.live else 0,
        )

    def _scores(
        self, book: Book
    ) -> tuple[dict[str, Vector], dict[str, list[str | None]], str]:
        """Return scores and categories by check, with the judge's name."""
        scores = dict[str, Vector]()
        names = dict[str, list[str | None]]()
        if (recorded := self.recorded) is not None:
            for check, values in recorded.columns.items():
                scores[check], names[check] = values, recorded.categories(check)
            return scores, names, recorded.name
        assert self.live is not None
        for check in self.live.items:
            scores[check], names[check] = self.live.scored(book, check)
        return scores, names, self.live.subject.name

    def _bar(
        self, plain: Vector, categories: Sequence[str | None]
    ) -> tuple[float, str]:
        """Return the bar as a share of the scale, and in words; "" if the judge has categories."""
        if self.more.bar is not None:
            return self._share(self.more.bar), f"a score of {self.more.bar:g}"
        if any(categories):
            return math.nan, ""
        return middle(plain), "the judge's median score"

    def _share(self, score: float) -> float:
        if self.recorded is not None:
            return self.recorded.column.percent(score) / 100
        assert self.live is not None
        scale = self.live.own.scale
        if not scale.low <= score <= scale.high:
            raise OptionError(f"--bar {score:g} is outside the judge's scale {scale}")
        return scale.to_percent(score) / 100

    def _model(self) -> str:
        """Return the name of the judge's model; of recorded scores, their column's."""
        if self.recorded is not None:
            return self.recorded.name
        assert self.live is not None
        return self.live.own.lm.name

    def _own_systems(self) -> list[str]:
        """Return the systems that count as the judge's own."""
        return list(self.more.own) or own_systems(self.rows.named, self._model())

    def _not_own(self) -> str | None:
        """Return why these rows say nothing of own writing; None if they do."""
        systems = self.rows.named
        chosen = self._own_systems()
        listed = ", ".join(sorted(set(filter(None, systems)))[:12])
        absent = [name for name in chosen if name not in systems]
        if not listed:
            return "no column has the systems of the outputs; name it with --columns system=NAME"
        if absent:
            return f"no row is of {absent[0]}; the systems are {listed}"
        if not chosen:
            return f"no system ({listed}) is named like the family of {self._model()}; name its own with --own"
        scores = np.ones(len(systems))
        if not leads(scores, np.isin(systems, chosen), self.rows.documents):
            return f"no document has an output of {', '.join(chosen)} and of another system"
        return None

    def _own(self, plain: Vector, how: Resampling, left: dict[str, str]) -> Lead | None:
        if "own" not in self.wanted or "own" in left:
            return None
        chosen = self._own_systems()
        mine = np.isin(self.rows.named, chosen)
        found = leads(plain, mine, self.rows.documents)
        if not found:
            reason = "no document has a score of an own output and of another one"
            leave_out("own", reason, named=self.wanted["own"], left=left)
            return None
        beside = recorded_columns(self.more).get("own", "")
        if beside:
            other = leads(self._beside(beside), mine, self.rows.documents)
        else:
            other = None
        return lead(found, chosen, how, beside, other)

    def _beside(self, column: str) -> Vector:
        """Another judge's scores of the rows."""
        values = read_column(self.file, Column.of(column), "--recorded own=").values
        places = {id(record): at for at, record in enumerate(self.file.records)}
        return values[[places[id(record)] for record in self.rows.records]]

    def _moves(self, scores: Mapping[str, Vector]) -> list[Move]:
        """Return the largest changes of each check, with the outputs that were scored after it."""
        moves = []
        plain = scores[PLAIN]
        for check in CHECKS:
            if check not in scores:
                continue
            size = np.nan_to_num(np.abs(scores[check] - plain))
            for place in np.argsort(-size, kind="stable")[:3].tolist():
                if size[place] > 0:
                    after = float(scores[check][place])
                    row = self.rows.rows[place]
                    output = self._output(check, place)
                    moves.append((check, row.id, float(plain[place]), after, output))
        return moves

    def _output(self, check: str, place: int) -> str:
        """Return a row's output as it was scored after a check."""
        item = None if self.live is None else self.live.items[check][place]
        return self.rows.rows[place].output if item is None else item.output


def _refuse_unused(
    wanted: Mapping[str, bool], given: Mapping[str, str], more: CheckOptions
) -> None:
    """Raise OptionError for an option of a check that is not made."""
    options = {f"--recorded {check}=…": check for check in given}
    options |= {"--rubric": "reworded"} if more.rubric is not None else {}
    options |= {"--own": "own"} if more.own else {}
    for option, check in options.items():
        if check not in wanted:
            raise OptionError(
                f"{option} has no effect without --check {check}; add it, or leave {option} out"
            )
