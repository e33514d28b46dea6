"""Whether the mean of a search's best candidates agrees better with people than the one it chose, without new calls.

The candidates' verdicts on the training rows are there already. The best values among them are too high (winner's
curse), so that both ways are measured on rows that neither chose by: for each fold of whole groups, candidates are
ranked, and one is chosen, by the other folds alone. The one stays unless the mean clearly beats it, since an ensemble
costs as many times the calls as it has members.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import dspy
import numpy as np
from numpy.typing import NDArray

from ...agreement.objectives import Objective, Q
from ...errors import OptionError
from ...programs.ensemble import FEWEST, LEAST_SD, MOST, Ensemble, Norm
from ...programs.judge import Judge
from ...programs.refining import Refinement, weighted_mean
from ..examples import Agreement, Scored, Vector, agreement, clearly, difference, groups
from ..search.base import DemonstrationSearch, SearchRecord, Trial
from .heads import fold_numbers
from .weights import standardised_by

#: A search's own way to choose one of its candidates (`DemonstrationSearch.choose`).
Choose = Callable[[Sequence[Trial], Sequence[dspy.Example]], tuple[Trial, str | None]]
#: With fewer groups there is nothing to rank candidates by and still measure them.
FEWEST_GROUPS = 5


def refuse_ensemble(top: int, judge: Judge, search: DemonstrationSearch) -> None:
    """Raises OptionError where the best candidates of this search cannot become an ensemble."""
    if not FEWEST <= top <= MOST:
        raise OptionError(f"ensemble_top is {top}; an ensemble has {FEWEST} to {MOST} members")
    if (why := search.no_ensemble()) is not None:
        raise OptionError(f"ensemble_top (--ensemble-top) cannot be used with the optimizer {search.name}: {why}")
    if judge.whole_documents:
        raise OptionError(
            f"ensemble_top (--ensemble-top) cannot be used with {judge.kind}, which ranks the outputs of a document; "
            "it is for judges of one output at a time"
        )


def form_ensemble(
    record: SearchRecord,
    examples: Sequence[dspy.Example],
    top: int,
    choose: Choose,
    *,
    objective: Objective | None = None,
    seed: int = 0,
    sure: float = 0.7,
) -> tuple[Ensemble | None, Refinement]:
    """An ensemble of the `top` candidates with the highest objective if it clearly beats the chosen one out of fold,
    else None; and what was found, with the training scores of what is kept.

    record: of the search; candidates that were dropped, failed too often or say the same of every row are left out.
    examples: the rows that it judged. sure: the share of paired resamples of whole groups in which the ensemble must
    win. The same seed gives the same answer. Racing looked at all rows before it dropped candidates; that much, both
    ways have seen of the rows they are measured on.
    """
    by, whole = objective or Q(), [t for t in record.tried if t.candidate.dropped is None]
    best = _best(_on(whole, examples, np.arange(len(examples)), by), top)
    names, group = [whole[i].candidate.name for i in best], groups(examples)

    def stays(reason: str, found: Agreement | None = None, single: Agreement | None = None) -> Refinement:
        return Refinement(Ensemble.kind, record.scored.percents, _told(names, found, single, reason), reason)

    if len(best) < FEWEST:
        return None, stays(f"there are not {FEWEST} candidates that one could be made of")
    if (count := len(set(group))) < FEWEST_GROUPS:
        return None, stays(f"training rows of {count} documents are too few to tell whether the mean of several helps")
    apart = _out_of_fold(whole, examples, top, choose, by, fold_numbers(group, seed=seed))
    result, single = (agreement(scores, examples, objective=by, seed=seed, rounds=500) for scores in apart)
    measured = (
        f"on training rows that they were not chosen by, {by.label} {result.value:.2f} against {single.value:.2f}"
    )
    if not clearly(difference(*apart, examples, objective=by, seed=seed, rounds=1000), sure):
        text = f"the mean of the best {len(best)} candidates does not clearly beat a single one: {measured}"
        return None, stays(text, result, single)
    percents = [whole[i].scored.percents for i in best]
    # Six digits are what an artifact keeps.
    norms = [Norm(round(float(np.nanmean(p)), 6), round(float(np.nanstd(p)), 6)) for p in percents]
    programs = [whole[i].program for i in best]
    ensemble = Ensemble(programs, norms, lm=programs[0].own_lm, scale=programs[0].scale)
    z = np.stack([(p - norm.mean) / norm.sd for p, norm in zip(percents, norms, strict=True)], axis=1)
    scores = np.clip(norms[0].mean + norms[0].sd * weighted_mean(z, np.ones(len(best))), 0.0, 100.0)
    changed = (
        f"the mean of {len(best)} candidates ({', '.join(names)}) takes the place of a single one: {measured}; "
        f"scoring takes {ensemble.calls_per_row()} calls a row"
    )
    details = _told(names, result, single, None) | {
        "demos": sum(whole[i].candidate.demos for i in best),
        "training_q": agreement(scores, examples, objective=by, seed=seed, rounds=0).to_dict()["q"],
    }
    mean = f"the mean of {', '.join(names)}"
    return ensemble, Refinement(Ensemble.kind, scores, details, changed=changed, candidate=mean)


def _told(
    names: Sequence[str], found: Agreement | None, single: Agreement | None, reason: str | None
) -> dict[str, object]:
    return {
        "members": list(names),
        "q": None if found is None else found.to_dict()["value"],
        "single_q": None if single is None else single.to_dict()["value"],
        "reason": reason,
    }


def _on(tried: Sequence[Trial], examples: Sequence[dspy.Example], kept: NDArray[np.intp], by: Objective) -> list[Trial]:
    """The candidates as if they had been judged on these rows alone."""
    rows = [examples[i] for i in kept.tolist()]
    made = []
    for one in tried:
        percents = one.scored.percents[kept]
        measured = agreement(percents, rows, objective=by, seed=0, rounds=0)
        candidate = replace(
            one.candidate,
            agreement=measured,
            disqualified=one.candidate.disqualified or measured.reason,
        )
        made.append(replace(one, candidate=candidate, scored=Scored((), percents)))
    return made


def _best(tried: Sequence[Trial], top: int) -> list[int]:
    """Numbers of the `top` candidates with the highest objective; of equal ones first the one with fewer
    demonstrations."""
    fit = [
        i for i, t in enumerate(tried) if t.candidate.disqualified is None and np.nanstd(t.scored.percents) >= LEAST_SD
    ]
    order = sorted(fit, key=lambda i: (-round(tried[i].candidate.agreement.value, 9), tried[i].candidate.parts, i))
    return order[:top]


def _out_of_fold(
    tried: Sequence[Trial],
    examples: Sequence[dspy.Example],
    top: int,
    choose: Choose,
    by: Objective,
    folds: NDArray[np.intp],
) -> tuple[Vector, Vector]:
    """Scores of each fold by the ensemble, and by the one, that the other folds would have chosen; z-scores by the
    other folds' means and standard deviations, so that folds can be pooled."""
    ensemble, single = (np.full(len(examples), math.nan) for _ in range(2))
    for fold in np.unique(folds):
        rest, out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        known = _on(tried, examples, rest, by)
        chosen, _ = choose(known, [examples[i] for i in rest.tolist()])
        alone = next(i for i, t in enumerate(known) if t is chosen)
        members = [standardised_by(tried[i].scored.percents, rest, out, LEAST_SD) for i in _best(known, top) or [alone]]
        ensemble[out] = weighted_mean(np.stack(members, axis=1), np.ones(len(members)))
        single[out] = standardised_by(tried[alone].scored.percents, rest, out, LEAST_SD)
    return ensemble, single
