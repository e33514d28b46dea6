"""Perturbed copies of good labelled outputs, as further evidence for a search that has few labels.

Nobody scored the copies. What is known of one is that it is worse than the output it was made of, so it gets a lower
score by a rule, stands in its original's group, is never held out, and takes no part in calibration. Whether the copies
help is measured on human ratings alone, on rows that neither search saw, before they are used.
Source: the perturbations are those of the DHP benchmark; to compile with them is ours.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..agreement.discernment import OUR_WEIGHTS
from ..agreement.objectives import Objective, Q
from ..datasets.duplicates import shared
from ..datasets.perturbations.registry import PERTURBATIONS, Amounts, Degree, Pair, Perturbation, Text, pairs_of
from ..datasets.records import Labels, Row
from ..datasets.splits import Split, group_folds
from ..errors import LabelsError, LeakError, OptionError
from ..programs.judge import Judge
from ..programs.progress import Progress, Silent
from ..signatures.values import Scale, json_number
from .examples import clearly, difference, examples_of, score_rows

#: How much of an output's way up from the worst score its copy keeps. Ours, written down before it was tried.
KEPT: Mapping[Degree, float] = {"minor": 0.75, "major": 0.4, "only": 0.25}
#: A perturbation speaks of an aspect that it takes at least this much of its weight from (see `OUR_WEIGHTS`).
_SPEAKS = 0.5
_FOLDS = 2
_MARK = "+perturbed"


@dataclass(frozen=True)
class Augmented:
    """Perturbed copies of labelled rows. labels: the copies alone, with the scale and aspect of the originals.
    sources: id of each copy's original. perturbations: how many copies each made. left: originals without a copy."""

    labels: Labels
    sources: tuple[str, ...]
    perturbations: Mapping[str, int]
    left: int

    def __len__(self) -> int:
        return len(self.labels)


def augment(
    labels: Labels,
    *,
    most: float = 0.5,
    kept: Mapping[Degree, float] = KEPT,
    seed: int = 0,
    language: str = "en",
    perturbations: Mapping[str, Perturbation] = PERTURBATIONS,
) -> Augmented:
    """Perturbed copies of the best outputs, at most `most` (0..1) of the number of rows, one of each output.

    Give it training rows only: what a perturbation borrows from other documents comes from these rows. Outputs in the
    upper half of the scale are perturbed, the best first, by what `OUR_WEIGHTS` says lowers the aspect, or by all
    where it does not know it, taken in turn from a random start. A copy's score lies between the worst score and its
    original's (`kept`). The same labels and seed give the same copies. Raises OptionError.
    """
    if not 0 < most <= 1 or any(not 0 <= kept.get(degree, -1) < 1 for degree in KEPT):
        raise OptionError(
            f"most {most} must lie in (0, 1], what is kept ({dict(kept)}) in [0, 1) for {', '.join(KEPT)}"
        )
    rules, scale, rng = (
        _of_aspect(labels.aspect, perturbations),
        Scale(*labels.scale),
        random.Random(f"{seed}|{len(labels)}"),
    )
    percents = np.array([scale.to_percent(score) for score in labels.scores.tolist()])
    order = list(range(len(labels)))
    rng.shuffle(order)
    good = sorted((i for i in order if percents[i] >= 50), key=lambda i: -percents[i])
    texts = [_text(row) for row in labels.rows]
    known = {(row.source, row.output) for row in labels.rows}
    rows: list[Row] = []
    sources, made, left = [], Counter[str](), 0
    turn = rng.randrange(len(rules)) if rules else 0
    for row, text in ((labels.rows[i], texts[i]) for i in good):
        if len(rows) >= max(1, int(most * len(labels))):
            break
        others = [other for other in texts if other.group != text.group]
        for step in range(len(rules)):
            name, degree = rules[(turn + step) % len(rules)]
            rule = perturbations[name.partition(":")[0]]
            pairs = pairs_of(rule, [text, *others], degrees=[degree], seed=seed, amounts=Amounts(), language=language)
            pair = next(pairs)  # the first text's
            if isinstance(pair, Pair) and (row.source, pair.perturbed) not in known:
                break
        else:
            left += 1
            continue
        turn += step + 1
        rows.append(_copy(labels, row, pair, kept[degree]))
        known.add((row.source, pair.perturbed))
        sources.append(row.id)
        made[name] += 1
    counts = {name: made[name] for name, _ in rules if made[name]}
    return Augmented(replace(labels, rows=tuple(rows), warnings=()), tuple(sources), counts, left)


def _of_aspect(aspect: str, there: Mapping[str, Perturbation]) -> list[tuple[str, Degree]]:
    """Perturbations by rules that speak of the aspect; all of them where the table does not know it."""
    rules = [p for p in there.values() if p.kind == "degradation" and p.method == "rules"]
    folded = aspect.casefold()
    speaking = [p for p in rules if OUR_WEIGHTS.get(p.name, {}).get(folded, 0.0) >= _SPEAKS]
    return [
        (p.name if degree == "only" else f"{p.name}:{degree}", degree)
        for p in speaking or rules
        for degree in p.degrees
    ]


def _text(row: Row) -> Text:
    references = (row.reference,) if row.reference else ()
    return Text(row.id, row.output, row.source, row.context, references, row.group)


def _copy(labels: Labels, row: Row, pair: Pair, kept: float) -> Row:
    worst = labels.scale[0]
    score = worst + kept * (row.scores[labels.aspect] - worst)
    return replace(
        row,
        id=f"{row.id}{_MARK}:{pair.name}",
        output=pair.perturbed,
        system=None if row.system is None else f"{row.system}{_MARK}",
        scores={labels.aspect: score},
        ratings={},
    )


# Does it help? -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AugmentationTrial:
    """Whether copies help, on `rows` rows with human ratings that neither fit saw.

    difference: the objective with copies less that without (value, low, high, p two-sided), NaN where it was not
    measured. used: whether they helped surely enough. reason: what came out in one sentence, either way.
    """

    used: bool
    difference: tuple[float, float, float, float]
    rows: int
    copies: int
    perturbations: Mapping[str, int]
    reason: str

    def to_dict(self) -> dict[str, Any]:
        figures = zip(("value", "low", "high", "p"), map(json_number, self.difference), strict=True)
        return asdict(self) | {"perturbations": dict(self.perturbations), "difference": dict(figures)}


#: Compiles a judge from rows with human ratings, and from copies beside them (None: without).
Fit = Callable[[Labels, Labels | None], Judge]


def try_augmentation(
    fit: Fit,
    train: Labels,
    *,
    most: float = 0.5,
    sure: float = 0.7,
    objective: Objective | None = None,
    seed: int = 0,
    language: str = "en",
    progress: Progress | None = None,
) -> tuple[Augmented | None, AugmentationTrial]:
    """Copies of the training rows if they help, else None; and what was measured.

    The training rows are cut into two parts by whole groups. Each is judged by two judges compiled from the other one,
    with copies and without, so that it costs four further fits. Copies are used if the objective (default: Q) is higher
    with them in more than `sure` of the paired resamples, as for a search's candidates. `train` must not hold what is
    reported on. Raises LeakError for a fit that would see a row it is measured on.
    """
    whole = augment(train, most=most, seed=seed, language=language)
    untried = partial(AugmentationTrial, False, (np.nan,) * 4, 0, len(whole), whole.perturbations)
    if not len(whole):
        return None, untried("no output in the upper half of the scale could be perturbed")
    try:
        parts = group_folds(train, k=_FOLDS, seed=seed)
    except LabelsError as error:
        return None, untried(f"not tried: {error}")
    percents: dict[bool, list[Any]] = {True: [], False: []}
    rows = []
    for part in parts:
        copies = apart(augment(part.train, most=most, seed=seed, language=language), part.heldout)
        refuse_leak(part, copies)
        heldout = examples_of(part.heldout)
        rows += heldout
        for helped in (False, True):
            judge = fit(part.train, copies.labels if helped and len(copies) else None)
            percents[helped].append(score_rows(judge, heldout, progress or Silent()).percents)
    by = objective or Q()
    gap = difference(np.concatenate(percents[True]), np.concatenate(percents[False]), rows, objective=by, seed=seed)
    used = clearly(gap, sure)
    measured = (
        f"{by.label} {gap.value:+.2f} [{gap.low:.2f}, {gap.high:.2f}] on {len(rows)} training rows that were left out"
    )
    if gap.reason:
        reason = f"copies were not used: {gap.reason}"
    elif used:
        reason = f"{len(whole)} perturbed copies were used: with copies {measured}"
    else:
        reason = f"perturbed copies were not used: with copies {measured}, no clear gain"
    outcome = (gap.value, gap.low, gap.high, gap.p)
    trial = AugmentationTrial(used, outcome, len(rows), len(whole), whole.perturbations, reason)
    return (whole if used else None), trial


def refuse_leak(part: Split, copies: Augmented) -> None:
    """Raises LeakError where a copy stands in a group that is held out, or is nearly a held-out row's text."""
    held = set(part.heldout.groups)
    own = set(part.train.groups)
    for row in copies.labels.rows:
        if row.group in held or row.group not in own:
            raise LeakError(
                f"the perturbed copy {row.id!r} belongs to group {row.group!r}, which is not a training one"
            )
    if met := shared(copies.labels.rows, part.heldout.rows):
        raise LeakError(
            f"the perturbed copy {copies.labels.rows[met[0].one].id!r} is the same as a held-out row, or nearly"
        )


def apart(copies: Augmented, heldout: Labels) -> Augmented:
    """Without the copies that perturbing made like a held-out row: they would show it with a label that no one gave."""
    leaked = {copies.labels.rows[met.one].group for met in shared(copies.labels.rows, heldout.rows)}
    kept = [i for i, row in enumerate(copies.labels.rows) if row.group not in leaked]
    return replace(copies, labels=copies.labels.subset(kept), sources=tuple(copies.sources[i] for i in kept))


def with_copies(train: Labels, copies: Labels | None) -> Sequence[Any]:
    """The examples of a search: the training rows, then their copies. Raises LeakError for copies of other groups."""
    examples = examples_of(train)
    if copies is None:
        return examples
    strange = set(copies.groups) - set(train.groups)
    if strange:
        raise LeakError(f"a perturbed copy belongs to group {sorted(strange)[0]!r}, which is not a training one")
    return examples + examples_of(copies)
