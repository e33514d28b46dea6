"""`compile --also discern`: strengths of a run's finalists beside agreement, and their Pareto front.

They judge good training outputs before and after perturbations; held-out rows are not touched.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from judgesmith.compiling.run import CompileRun
from judgesmith.datasets.perturbations.attacks import CONTROL
from judgesmith.datasets.perturbations.registry import (
    PERTURBATIONS,
    Amounts,
    Text,
    find_perturbations,
)
from judgesmith.datasets.records import Labels
from judgesmith.discerning.judging import Subject, asks_of, judge, missing
from judgesmith.discerning.options import DiscernOptions
from judgesmith.discerning.pairs import Book, Texts, make_pairs
from judgesmith.discerning.run import analyse
from judgesmith.errors import OptionError
from judgesmith.figures import OF_JUDGES, Dot, Dots, plot
from judgesmith.optimizers.compiling import Compiler
from judgesmith.optimizers.examples import agreement, examples_of
from judgesmith.optimizers.report import Fitted, Plan
from judgesmith.pages import Figures, Section, render, write_page
from judgesmith.programs.capabilities import fitted_of, passes_of, set_brief
from judgesmith.programs.judge import Judge
from judgesmith.programs.refining import fitted_always
from judgesmith.running.console import Watch, out, wide
from judgesmith.running.limits import Limits
from judgesmith.running.plain import clean
from judgesmith.signatures.values import Item
from judgesmith.tables import Cell, Column, Table

#: What the page shows agreement against.
AXES: dict[str, Callable[[Point], float]] = {
    "Least D over perturbations: more is better": lambda point: point.least_d[0],
    "False alarms, as a share: less is better": lambda point: point.false_alarms,
    "Gain of attacks: less is better, down to 0": lambda point: point.gain,
    "Tokens for a text: less is better": lambda point: point.tokens,
}
HOW = (
    "Agreement is that on training rows, each judged without its document; least D is that of the perturbation which "
    "is noticed least (from 1 on it is noticed); false alarms are harmless changes that lowered the score; gain is the "
    "mean rise of the score by attacks, as a share of the scale. Brackets and lines are 95 % intervals: smaller "
    "differences are noise. Large dots are on the front: no other one is as good in everything and better in something."
)


@dataclass(frozen=True, slots=True)
class Point:
    """A finalist, measured; NaN is undefined."""

    name: str
    agreement: tuple[float, float, float]
    """The run's objective on training rows and its 95 % interval; `least_d` has one, too."""
    least_d: tuple[float, float, float]
    """Normalised D, at least 0, of the perturbation that is noticed least (`worst`)."""
    worst: str
    false_alarms: float
    """The share of harmless changes that lowered the score, in [0, 1]."""
    gain: float
    """The mean rise of the score by attacks, as a share of the scale, in [-1, 1]."""
    tokens: float
    """Sent and received for a text; what is only read counts by its length."""
    failed: int
    """Texts without a score."""


def front(points: Sequence[Point]) -> list[str]:
    """Return the names of those to which no other one is equal in everything and superior in something.

    What is undefined is worst, and an attack that lowers the score is no better than one that does nothing.
    """
    merits = np.array(
        [
            (p.agreement[0], p.least_d[0], -p.false_alarms, min(-p.gain, 0), -p.tokens)
            for p in points
        ]
    )
    merits = np.where(np.isnan(merits), -math.inf, merits.round(9))
    beaten = [
        ((merits >= one).all(axis=1) & (merits > one).any(axis=1)).any()
        for one in merits
    ]
    return [
        point.name for point, worse in zip(points, beaten, strict=True) if not worse
    ]


class Comparison:
    """Finalists on perturbed training outputs: planned, then run, then shown.

    compiler: with the budget that this leaves. plan: of the whole run, where the one passed in is without this. points:
    the saved finalist first.

    Raises:
        OptionError: If a judge cannot be compared so, or no perturbation applies to the texts.
    """

    def __init__(
        self,
        run: CompileRun,
        compiler: Compiler,
        student: Judge,
        labels: Labels,
        plan: Plan,
    ) -> None:
        if student.whole_documents or student.method.columns():
            why = "it ranks the outputs of a document"
            if student.method.columns():
                why = "signals are of the text as it was"
            raise OptionError(
                f"--also discern changes texts, and this judge cannot judge one by itself: {why}"
            )
        o = run.run
        self.page = run.output.with_suffix(".front.html")
        self.objective = plan.objective
        self.options = DiscernOptions(
            language=o.discern_language, seed=o.seed, rounds=500
        )
        self.texts = good_texts(
            labels if plan.parts.crossed else plan.parts.splits[0].train,
            o.discern_texts,
            o.seed,
        )
        chosen = find_perturbations(o.discern_perturb)
        pairs = make_pairs(
            chosen,
            self.texts,
            seed=o.seed,
            amounts=Amounts(),
            language=o.discern_language,
        )
        self.book = Book.open(None, {}, lambda: pairs, overwrite=False)
        if not self.book.pairs:
            why = self.book.left[0].reason
            raise OptionError(
                f"--also discern: no training output could be perturbed ({why}); see --discern-perturb"
            )
        self.asks = asks_of(self.book.pairs, self.texts.role, against_reference=False)
        self.about = f"{len(self.texts.texts)} good training outputs and {len(self.book.pairs)} perturbed texts"
        self.most = min(
            o.finalists,
            compiler.search.evaluations() + fitted_always(student.method),
        )
        self.points = list[Point]()
        calls = self.most * len(self.asks) * plan.row_calls
        # A budget is shared out in proportion to what compiling and comparing would take.
        share = calls / max(1, plan.calls + calls)
        budget = {
            name: most
            for name in ("max_calls", "max_cost")
            if share and (most := getattr(o, name))
        }
        ours: Any = {
            name: type(most)(most * share) or 1 for name, most in budget.items()
        }
        theirs = {name: most - ours[name] for name, most in budget.items()}
        self.limits = Limits(**ours)
        options = compiler.options.model_copy(update=theirs)
        self.compiler = replace(compiler, options=options)
        note = f"--also discern: up to {self.most} finalists judge {self.about}, at most {calls:,} of the calls"
        spent = {
            name: getattr(plan, name)
            for name in ("prompt_tokens", "completion_tokens", "cost")
        }
        more: Any = {
            name: value and type(value)(value / (1 - share))
            for name, value in spent.items()
        }
        self.plan = replace(
            plan, calls=plan.calls + calls, notes=(*plan.notes, note), **more
        )

    def run(self, compiler: Compiler) -> Self:
        """Compare the finalists of a finished run, and write the page.

        Raises:
            ModelError: If the model cannot be used.
            BudgetError: If a limit is reached.
            OptionError: If the page cannot be written.
        """
        assert compiler.outcome is not None
        saved = compiler.options.take or compiler.outcome[0].name
        judged = sorted(
            compiler.finalists(*compiler.outcome), key=lambda one: one.name != saved
        )[: self.most]
        lm = judged[0].judge.lm
        count = len(judged) * len(self.asks)
        with self.limits.spending(lm), Watch("comparing finalists", count) as watch:
            self.points = [
                self._point(one, compiler.outcome[1], watch) for one in judged
            ]
        lead, *notes = self._lines()
        page = front_page(self.points, self.objective.label, self.about, lead, notes)
        write_page(self.page, page, "--also discern")
        return self

    def _point(self, finalist: Fitted, train: Labels, watch: Watch) -> Point:
        own = finalist.judge.with_()
        book = replace(self.book, scores={})
        by = self.objective
        set_brief(own.method, True)
        subject = Subject(finalist.name, {"score": own}, {"score": finalist.name})
        meter = own.lm.meter
        before = sum(meter.logical_tokens)
        judge(
            subject,
            missing(subject, book, self.texts.role, self.options),
            book,
            watch.step,
        )
        tokens = float(sum(meter.logical_tokens) - before)
        if fitted_of(own.method):
            tokens += sum(
                passes_of(own.method, Item.of(ask)).tokens for ask in self.asks.values()
            )
        result = analyse(subject, book, PERTURBATIONS, self.options)
        harmful = [line for line in result.of("degradation") if line.enough]
        worst = min(harmful, key=lambda line: line.test.d_normalised, default=None)
        if worst:
            least = (worst.test.d_normalised, worst.test.low, worst.test.high)
        else:
            least = (math.nan,) * 3
        attacks = [
            line.test
            for line in result.of("attack")
            if line.name != CONTROL and line.test.n
        ]
        if attacks:
            rise = math.fsum(t.drop * t.n for t in attacks) / sum(t.n for t in attacks)
        else:
            rise = math.nan
        reached = agreement(
            finalist.percents,
            examples_of(train),
            objective=by,
            seed=self.options.seed,
            rounds=500,
        )
        return Point(
            finalist.name,
            (reached.value, reached.low, reached.high),
            least,
            worst.name if worst else "too few texts",
            result.false_alarms,
            rise / (own.scale.high - own.scale.low),
            tokens / len(self.asks),
            result.failed,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the points, their front, settings and notes as plain JSON types."""
        points = list(map(asdict, self.points))
        best = front(self.points)
        return {
            "points": points,
            "front": best,
            "about": self.about,
            "notes": self._lines(),
            "page": str(self.page),
        }

    def tell(self) -> None:
        """Print the table, and what can be done with it."""
        self._table().show(wide())
        for line in (*self._lines(), f"Wrote {self.page}"):
            out.print(clean(line), markup=False, soft_wrap=True)

    def _lines(self) -> list[str]:
        """Return the result, then the notes."""
        failed = [
            f"{p.name}: {p.failed} texts have no score" for p in self.points if p.failed
        ]
        saved = f"{self.points[0].name} is saved. On the front: {', '.join(front(self.points))}."
        return [
            f"{saved} To save another one, add --take NAME: only its held-out rows cost calls.",
            *failed,
        ]

    def _table(self) -> Table:
        return finalists(self.points, self.objective.label, self.about)


def finalists(points: Sequence[Point], objective: str, about: str) -> Table:
    """Return the points, a row each. objective: what agreement is. about: the texts that were judged."""
    label = f"{objective} on training rows"
    best = front(points)
    forms = {
        label: ".2f",
        "least D": ".2f",
        "in": "",
        "false alarms": ".0%",
        "gain": "+.0%",
        "tokens": ".0f",
    }
    columns = {"finalist": "", **forms, "on the front": ""}
    table = Table(map(Column, columns, columns.values()), f"Finalists on {about}")
    for number, p in enumerate(points, start=1):
        last = (
            p.worst,
            p.false_alarms,
            p.gain,
            p.tokens,
            "yes" if p.name in best else "no",
        )
        table.add(
            Cell(p.name, colour=number), Cell(*p.agreement), Cell(*p.least_d), *last
        )
    return table


def front_page(
    points: Sequence[Point], objective: str, about: str, lead: str, notes: Sequence[str]
) -> str:
    """Return the points as a page: their table, and agreement against each of the rest."""
    figures = []
    best = front(points)
    for words, value in AXES.items():
        dots = [
            Dot(value(p), *p.agreement, 5.5 if p.name in best else 3, p.name)
            for p in points
        ]
        series = [
            Dots([dot], colour) for dot, colour in zip(dots, OF_JUDGES, strict=False)
        ]
        figures.append(
            (
                words,
                plot(series, words.partition(":")[0], objective, salt=words, width=440),
            )
        )
    table = Section("Finalists", [finalists(points, objective, about)])
    sections = [table, Section("The front", [Figures(figures), HOW])]
    return render(
        "More than agreement: finalists of a compile run",
        sections,
        lead=lead,
        notes=notes,
    )


def good_texts(train: Labels, n: int, seed: int) -> Texts:
    """Return `n` good outputs, drawn by `seed` from the best-rated output of each document.

    Outputs below the median of all are left out.
    """
    best = {
        train.rows[place].group: place
        for place in np.argsort(train.scores, kind="stable").tolist()
    }
    good = sorted(
        place
        for place in best.values()
        if train.scores[place] >= np.median(train.scores)
    )
    rows = [
        train.rows[place]
        for place in sorted(random.Random(seed).sample(good, min(n, len(good))))
    ]
    texts = [
        Text(
            r.id,
            r.output,
            r.source,
            r.context,
            (r.reference,) * bool(r.reference),
            r.group,
        )
        for r in rows
    ]
    return Texts(train.origin, "output", tuple(texts), len(good))
