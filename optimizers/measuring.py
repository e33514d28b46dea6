"""Measure what was fitted on rows that it did not learn from: agreement, decisions, and how sure scores are.

Functions of one frozen value, `Findings`. What is told of the results, and saved, is in `findings`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal, assert_never

import dspy
import numpy as np
from numpy.typing import NDArray

from judgesmith.agreement.correlation import Codes, Level, id_codes
from judgesmith.agreement.decisions import (
    accuracy_when_drawn,
    auc_when_drawn,
    balanced_when_drawn,
    cohen_when_drawn,
    found_when_drawn,
    kappa_when_drawn,
    pairwise_when_drawn,
)
from judgesmith.agreement.differences import Difference
from judgesmith.agreement.metric import AgreementValue
from judgesmith.agreement.objectives import Objective, Q, Reached
from judgesmith.agreement.replacement import way_to_rater
from judgesmith.agreement.resampling import (
    Agreement,
    Bounded,
    Range,
    RowSet,
    estimates_of,
    for_other_systems,
    interval_of,
)
from judgesmith.datasets.records import Labels
from judgesmith.datasets.row import Row
from judgesmith.datasets.splits import Split
from judgesmith.optimizers.crossing import (
    crossed,
    crossed_agreement,
    crossed_difference,
    on_one_scale,
)
from judgesmith.optimizers.examples import (
    Scored,
    Vector,
    agreement,
    difference,
    examples_of,
    groups,
    humans,
    scale_of,
)
from judgesmith.optimizers.fitting.outcome import (
    calibrated_without,
    fit_sureness,
    places_of,
)
from judgesmith.optimizers.fitting.readings import surface_percents
from judgesmith.optimizers.levels import Levels, levels_of, system_means
from judgesmith.optimizers.report import Fitted
from judgesmith.programs.outcome import COVERAGE, Sureness
from judgesmith.signatures.values import Item, Verdict, json_number
from judgesmith.wording import word_count

#: The objectives that measures of raw scores are.
MEASURED = {"auc": "auc", "pairwise_accuracy": "pairwise"}


@dataclass(frozen=True, slots=True)
class Measured:
    """A fit to the training rows of one part, with its scores and the model alone's of the held-out rows."""

    fitted: Fitted
    split: Split
    compiled: Scored
    zero_shot: Scored


@dataclass(frozen=True)
class Findings:
    """All that one compile run found out."""

    labels: Labels
    runs: Sequence[Sequence[Measured]]
    """One held-out part, or runs of cross-validation, of two folds at least."""
    final: Fitted
    """The fit that the judge comes from."""
    objective: Objective
    seed: int
    new_systems: bool = False
    """Whether the intervals of agreement speak of other systems, too."""
    again: bool = False
    """Whether folds chose among the candidates of the fit to all rows."""

    @property
    def parts(self) -> Sequence[Measured]:
        """Return the held-out part, or the folds of the first run, whose verdicts are reported."""
        return self.runs[0]

    @property
    def folds(self) -> int:
        """Return the number of folds; 0 for a single split."""
        return len(self.parts) if len(self.parts) > 1 else 0

    @property
    def seen(self) -> Labels:
        """Return the labels that the judge was compiled from."""
        return self.labels if self.folds else self.parts[0].split.train

    @cached_property
    def rows(self) -> list[Row]:
        """Return the held-out rows of all parts."""
        return [row for part in self.parts for row in part.split.heldout.rows]

    @cached_property
    def human(self) -> Vector:
        """Return the human scores of the held-out rows."""
        return np.concatenate([part.split.heldout.scores for part in self.parts])

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """Return the compiled judge's verdicts of the held-out rows."""
        return [verdict for part in self.parts for verdict in part.compiled.verdicts]

    @cached_property
    def percents(self) -> Vector:
        """Raw scores of the held-out rows, those of folds on one scale (`on_one_scale`).

        Calibrated ones, mapped as folds learnt it, would order rows by fold.
        """
        return percents_of_run(self.parts)

    @property
    def suggested(self) -> int:
        """Return how many of the held-out rows `suggest` chose: all, or none if the others were enough."""
        return sum(row.suggested for row in self.rows)

    @property
    def stopped(self) -> str | None:
        """Return why a search ended early, if one did."""
        for part in self.parts:
            if part.fitted.record.stopped:
                return part.fitted.record.stopped
        return self.final.record.stopped

    @cached_property
    def sureness(self) -> Sureness | None:
        """Intervals for the judge's scores; see `fitted_sureness`."""
        return fitted_sureness(self)

    def over_runs(self, measured: Sequence[AgreementValue]) -> AgreementValue:
        """Return the agreement over all runs of folds, or that of the single split."""
        return crossed_agreement(measured) if self.folds else measured[0]


def examples_of_run(run: Sequence[Measured]) -> list[dspy.Example]:
    """Return the held-out rows of a run as DSPy examples."""
    return list(chain.from_iterable(examples_of(part.split.heldout) for part in run))


def percents_of_run(run: Sequence[Measured]) -> Vector:
    """Raw scores of a run's held-out rows, those of folds on one scale where these learnt anything."""
    if all(
        np.array_equal(part.compiled.percents, part.zero_shot.percents, equal_nan=True)
        for part in run
    ):
        return np.concatenate([part.compiled.percents for part in run])
    if len(run) == 1:
        return run[0].compiled.percents
    return on_one_scale(
        [(part.fitted.percents, part.compiled.percents) for part in run]
    )


def plain_percents(run: Sequence[Measured]) -> Vector:
    """Return the model alone's raw scores of a run's held-out rows."""
    return np.concatenate([part.zero_shot.percents for part in run])


def moved_run(
    run: Sequence[Measured],
    scored: Callable[[Sequence[dspy.Example], Sequence[dspy.Example]], Vector],
) -> Vector:
    """Score a run's held-out rows by something without a model that the training rows teach.

    Scores of folds are moved to one mean label.
    """
    sides = [
        (examples_of(part.split.train), examples_of(part.split.heldout)) for part in run
    ]
    levels = np.array([humans(train).mean() for train, _ in sides])
    moved = zip(sides, levels.mean() - levels, strict=True)
    return np.concatenate([scored(*side) + by for side, by in moved])


# Agreement ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Agreements:
    """Agreement of the compiled judge, of the model alone, and of one without a model; with folds, over all runs."""

    compiled: AgreementValue
    zero_shot: AgreementValue
    surface: AgreementValue
    lead: Difference
    """Of the compiled judge over the model alone."""


def agreements(found: Findings) -> Agreements:
    """Measure the compiled judge beside those that it has to beat."""
    of: dict[str, Any] = {
        "objective": found.objective,
        "seed": found.seed,
        "new_systems": found.new_systems,
    }
    compiled = list[AgreementValue]()
    zero_shot = list[AgreementValue]()
    surface = list[AgreementValue]()
    leads = list[Difference]()
    for run in found.runs:
        examples = examples_of_run(run)
        own = percents_of_run(run)
        plain = plain_percents(run)
        compiled.append(agreement(own, examples, **of))
        zero_shot.append(agreement(plain, examples, **of))
        surface.append(agreement(moved_run(run, surface_percents), examples, **of))
        leads.append(difference(own, plain, examples, **of))
    return Agreements(
        found.over_runs(compiled),
        found.over_runs(zero_shot),
        found.over_runs(surface),
        crossed_difference(leads) if found.folds else leads[0],
    )


def lead(gap: Difference) -> tuple[float, float, float, float]:
    """Return a difference with its interval and p; NaN where it is the same in every resample, which says nothing."""
    if gap.high - gap.low < 1e-9:
        return gap.value, math.nan, math.nan, math.nan
    return gap.value, gap.low, gap.high, gap.p


def levels(found: Findings) -> Levels:
    """Measure agreement within systems and documents, and that of the systems' mean labels; of folds, over all runs."""
    of: dict[str, Any] = {"seed": found.seed, "new_systems": found.new_systems}
    inside: Mapping[Level, list[AgreementValue]] = {
        level: [] for level in levels_of(found.objective, examples_of_run(found.parts))
    }
    means = list[AgreementValue]()
    for run in found.runs:
        examples = examples_of_run(run)
        for level, values in inside.items():
            own = percents_of_run(run)
            values.append(agreement(own, examples, objective=Q(level), **of))
        if "within" in inside:
            means.append(of_system_means(run, found.objective, **of))
    return Levels(
        {level: found.over_runs(values) for level, values in inside.items()},
        found.over_runs(means) if means else None,
    )


def of_system_means(
    run: Sequence[Measured], by: Objective, *, seed: int, new_systems: bool
) -> AgreementValue:
    """Return the agreement of each system's mean label among the training rows, as if that judged the held-out ones.

    Of folds it is the mean of the agreements inside each, as in `check`. Over all folds together the mean of the
    other rows falls where a row's own label rises, and runs against systems that are equal.

    Args:
        run: The held-out part, or the folds of one run.
        by: What is maximised: Q over all rows.
        seed: Seed of the resamples.
        new_systems: True if the interval is to hold for other systems, too.
    """
    parts = list[tuple[Vector, list[dspy.Example]]]()
    for part in run:
        heldout = examples_of(part.split.heldout)
        parts.append((system_means(examples_of(part.split.train), heldout), heldout))
    if len(parts) == 1:
        return agreement(*parts[0], objective=by, seed=seed, new_systems=new_systems)
    alone = [agreement(*part, objective=by, seed=seed, rounds=0) for part in parts]
    defined = [one for one in alone if not one.reason]
    examples = [example for _, heldout in parts for example in heldout]
    whole = _inside_folds(parts)
    value = by.chance
    ends = (math.nan, math.nan)
    reason: str | None = "system means or labels are constant in each fold"
    why = reason
    if defined:
        interval = interval_of(whole, seed=seed)
        value = whole.values[0]
        ends = (interval.low, interval.high)
        reason = None
        why = interval.reason
    if defined and new_systems:
        left_out = []
        for system in dict.fromkeys(example.system for example in examples):
            left_out.append(_inside_folds(parts, without=system).values[0])
        ranged = Range(by.worst, by.chance + by.reach)
        ends = for_other_systems(ends, value, left_out, ranged, 0.95, larger=False)
    means: dict[str, Any] = {}
    for name in ("q", "pearson", "spearman", "kendall"):
        values = [getattr(one.objective, name) for one in defined]
        means[name] = float(np.mean(values)) if values else math.nan
    return replace(
        alone[0],
        reached=Reached(value, len(examples), 0, reason),
        low=ends[0],
        high=ends[1],
        objective=replace(alone[0].objective, **means),
        new_systems=new_systems,
        why=why,
    )


def _inside_folds(
    parts: Sequence[tuple[Vector, Sequence[dspy.Example]]], without: str | None = None
) -> Agreement:
    """Return the mean of Q inside each part, of the rows of all systems but one."""
    examples = [example for _, heldout in parts for example in heldout]
    units = id_codes(groups(examples), len(examples), "groups")
    sets = list[RowSet]()
    start = 0
    for scores, heldout in parts:
        own = units[start : start + len(heldout)]
        start += len(heldout)
        kept = np.array([example.system != without for example in heldout])
        sets.append((scores[kept], humans(heldout)[kept], own[kept], None))
    return Agreement.of_mean(sets, int(units.max()) + 1, "pooled", Q.name)


def way(found: Findings) -> dict[str, Any] | None:
    """Return the judge's place between guessing and one human rater; None if the rows have one rating."""
    singles = [row.ratings.get(found.labels.aspect, ()) for row in found.rows]
    raters = max(map(len, singles), default=0)
    if raters < 2:
        return None
    table = np.full((len(singles), raters), math.nan)
    for place, ratings in enumerate(singles):
        table[place, : len(ratings)] = ratings
    documents = [row.group for row in found.rows]
    once = way_to_rater(found.percents, table, documents=documents, seed=found.seed)
    whole = crossed([once], Range(-math.inf, math.inf)) if found.folds else once
    return {
        "raters": raters,
        "value": json_number(whole.value),
        "low": json_number(whole.low),
        "high": json_number(whole.high),
        "reason": once.reason,
    }


# Decisions ------------------------------------------------------------------------------------------------------------


def decisions(found: Findings, heldout: AgreementValue) -> dict[str, Any] | None:
    """Return the agreement of decisions on the held-out rows, each decided by the cuts of its own part.

    None for labels that are scores.
    """
    if found.labels.kind == "score":
        return None
    usable = np.flatnonzero(np.isfinite(found.percents))
    rows = [found.rows[place] for place in usable]
    figures: dict[str, Any] = {
        "kind": found.labels.kind,
        "n": len(rows),
        "failed": len(found.rows) - len(rows),
    }
    decision = found.final.judge.outcome.decision
    if decision is not None:
        figures |= {"categories": list(decision.names), "cuts": list(decision.cuts)}
    units = id_codes([row.group for row in rows], len(rows), "groups")
    count = int(units.max(initial=-1)) + 1
    for name, measure in _measures(found, usable, rows, units).items():
        drawn: dict[str, Any] = {"rounds": 1000, "confidence": 0.95, "seed": found.seed}
        (estimate,) = estimates_of(measure, count, [measure.within], **drawn)
        if found.folds:
            estimate = crossed([estimate], measure.within)
        # One number has one interval.
        shown = heldout if MEASURED.get(name) == found.objective.name else estimate
        figures[name] = {
            key: json_number(getattr(shown, key)) for key in asdict(estimate)
        }
    return figures


def _measures(
    found: Findings, usable: NDArray[np.intp], rows: Sequence[Row], units: Codes
) -> dict[str, Bounded]:
    """Return the measures of decisions on the rows with a score, by name, as functions of how often units are drawn."""
    kind = found.labels.kind
    x = found.percents[usable]
    match kind:
        case "preference":
            human = np.array([row.scores[found.labels.aspect] for row in rows], float)
            names = [row.doc_id for row in rows]
            by_document = pairwise_when_drawn(x, human, names)
            group = [units[names.index(name)] for name in dict.fromkeys(names)]
            accuracy = Bounded(
                lambda counts: by_document(counts[:, group]), by_document.within
            )
            return {"pairwise_accuracy": accuracy}
        case "binary":
            ours = _decided(found)[usable]
            people = _said(found)[usable]
            return {
                "tnr": found_when_drawn(ours, people, units, 0),
                "tpr": found_when_drawn(ours, people, units, 1),
                "kappa": cohen_when_drawn(ours, people, units),
                "balanced_accuracy": balanced_when_drawn(ours, people, units),
                "auc": auc_when_drawn(x, people, units),
            }
        case "category":
            ours = _decided(found)[usable]
            people = _said(found)[usable]
            return {
                "weighted_kappa": kappa_when_drawn(ours, people, units),
                "accuracy": accuracy_when_drawn(ours, people, units),
            }
        case "score":
            return {}
        case _:
            assert_never(kind)


def _decided(found: Findings) -> NDArray[np.intp]:
    """Return the place of the decision on each held-out row, by the judge of its fold; -1 where there is none."""
    places = list[int]()
    percents = iter(found.percents.tolist())
    for part in found.parts:
        decision = part.fitted.judge.outcome.decision
        for _ in part.compiled.verdicts:
            percent = next(percents)
            if decision is None or math.isnan(percent):
                places.append(-1)
            else:
                places.append(decision.place(percent))
    return np.array(places, int)


def _said(found: Findings) -> NDArray[np.intp]:
    """Return the place of people's category of each held-out row."""
    return np.concatenate([places_of(part.split.heldout) for part in found.parts])


# How sure scores are --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judged:
    """Some rows as intervals are fitted to them."""

    percents: Vector
    """Raw scores."""
    scores: Vector
    """Scores on the user's scale."""
    human: Vector
    groups: Sequence[str]


def fitted_sureness(found: Findings) -> Sureness | None:
    """Fit intervals for the judge's scores.

    Rows are the held-out ones, and training rows that were not held out in another fold, scored by what was chosen
    and mapped without them.
    """
    judged = [_heldout(part) for part in found.parts]
    if not found.folds:
        judged.append(_training(found))
    sure = fit_sureness(
        np.concatenate([one.percents for one in judged]),
        np.concatenate([one.scores for one in judged]),
        np.concatenate([one.human for one in judged]),
        list(chain.from_iterable(one.groups for one in judged)),
        scale_of(found.labels),
    )
    return None if sure is None else replace(sure, words=words_of(found.labels.rows))


def words_of(
    rows: Sequence[Item],
) -> dict[Literal["output", "source"], tuple[int, int]]:
    """Return the words of the shortest and the longest output and source."""
    outputs = [word_count(row.output) for row in rows]
    sources = [word_count(row.source) for row in rows]
    return {
        "output": (min(outputs), max(outputs)),
        "source": (min(sources), max(sources)),
    }


def _heldout(part: Measured) -> Judged:
    scores = [math.nan if v.failure else v.score for v in part.compiled.verdicts]
    rows = part.split.heldout
    percents = part.compiled.percents
    return Judged(percents, np.array(scores, dtype=float), rows.scores, rows.groups)


def _training(found: Findings) -> Judged:
    fitted = found.parts[0].fitted
    train = found.parts[0].split.train
    percents = fitted.percents if fitted.left_out is None else fitted.left_out
    scores = calibrated_without(
        percents,
        train.scores,
        train.groups,
        scale_of(train),
        seed=found.seed,
        fit=fitted.mapped,
    )
    if not found.suggested:  # there are enough rows that were drawn otherwise
        percents = np.where(train.suggested, math.nan, percents)
    return Judged(percents, scores, train.scores, train.groups)


def sureness_facts(found: Findings) -> dict[str, Any] | None:
    """Return the width of the intervals on the held-out rows, and what they rest on; None without any."""
    sure = found.sureness
    scale = scale_of(found.labels)
    if sure is None:
        return None
    widths = list[float]()
    scored = False
    for part in found.parts:
        percents = part.compiled.percents.tolist()
        for percent, verdict in zip(percents, part.compiled.verdicts, strict=True):
            if verdict.failure:
                continue
            scored = True
            interval = sure.interval(percent, verdict.score, scale)
            if interval is not None:
                widths.append(interval.high - interval.low)
    return {
        "coverage": COVERAGE,
        "width": round(float(np.mean(widths)), 6) if scored else None,
        "rows": sure.rows,
        "documents": sure.documents,
    }
