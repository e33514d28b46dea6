"""What a compile report notes, in sentences: each function yields those on one subject."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from judgesmith.agreement.meta.inputs import FEW_DOCUMENTS
from judgesmith.agreement.metric import AgreementValue
from judgesmith.agreement.raters import (
    DIFFERENT,
    between_raters,
    by_person,
    gave_most,
    within_raters,
)
from judgesmith.optimizers.examples import agreement, examples_of
from judgesmith.optimizers.fitting.curve import curve_of_lead
from judgesmith.optimizers.measuring import Agreements, Findings
from judgesmith.optimizers.report import FormTrial
from judgesmith.wording import word_count

#: Rows of a rater that agreement within raters takes at least, of the few that are labelled.
FEWEST_OF_RATER = 5


def notes_on(found: Findings, reached: Agreements) -> Iterator[str]:
    """Yield all notes, those on the labels first."""
    yield from found.labels.warnings
    yield from on_folds(found)
    yield from on_signals(found)
    yield from on_direction(found, reached.zero_shot)
    yield from on_raters(found)
    yield from on_suggested(found)
    yield from on_answers(found)
    yield from on_agreement(found, reached)
    yield from on_more_labels(found, reached)
    yield from on_search(found)


def on_folds(found: Findings) -> Iterator[str]:
    """Yield what is cross-validated, and where the judge that is measured is not the one that is saved."""
    if not found.folds:
        return
    times = f"{found.folds} folds"
    if len(found.runs) > 1:
        times = f"{len(found.runs)} times {times}"
    compiled = (
        "each fold judged by a judge compiled without it; the saved judge is compiled from all "
        f"{found.labels.count}, and intervals are wider by what fitting adds"
    )
    if found.again:
        compiled = (
            "each fold judged by the candidate that the other rows choose, no row's own document in its prompt; "
            "--cv 4 searches again without each fold"
        )
    yield f"agreement is cross-validated ({times}), {compiled}"
    saved = found.final.way
    others = Counter(part.fitted.way for part in found.parts)
    del others[saved]
    if others:
        chosen = ", ".join(
            f"{n} of {found.folds} folds chose {way}" for way, n in others.items()
        )
        yield (
            f"{chosen}, the saved judge is {saved}: the agreement is that of the folds' judges, and the saved "
            "one's may differ"
        )


def on_signals(found: Findings) -> Iterator[str]:
    """Yield each signal that human ratings fall with, on all labels: nothing is fitted to its scale."""
    examples = examples_of(found.labels)
    by = found.objective
    for column in found.final.judge.method.columns():
        values = [
            column.percent(column.value(row.columns)) for row in found.labels.rows
        ]
        alone = agreement(np.array(values), examples, objective=by, seed=found.seed)
        if alone.high < by.chance:
            yield (
                f"WARNING: signal {column.name} runs against people: {by.label} {alone.span} on "
                f"these labels; if lower is better, say so: --signal {column.turned}"
            )


def on_direction(found: Findings, zero_shot: AgreementValue) -> Iterator[str]:
    """Yield each sign that knows nothing of the labels and runs against them.

    A scale whose lowest number is the best looks like that, whatever its column is called.
    """
    by = found.objective
    labels = found.labels
    advice = "if the lowest number is the best one, reverse the labels"
    # Signals have a sentence of their own.
    asked = not found.final.judge.method.columns()
    far = by.chance - by.reach / 4
    if asked and zero_shot.high < by.chance and zero_shot.value <= far:
        yield (
            "WARNING: the model's own scores, before it learnt anything, run against these labels: "
            f"{by.label} {zero_shot.span}; {advice}"
        )
    if labels.kind == "preference":
        return
    lengths = np.array([word_count(row.output) for row in labels.rows], float)
    percents = 100 * lengths / max(1.0, lengths.max())
    by_length = agreement(percents, examples_of(labels), objective=by, seed=found.seed)
    if by_length.high < by.chance and by_length.value <= by.chance - by.reach / 2:
        yield (
            f"the longer an output, the lower its label ({by.label} {by_length.span} with its "
            f"words); this may be right, but {advice}"
        )


def on_raters(found: Findings) -> Iterator[str]:
    """Yield a sentence where one rater gave most labels, and one where raters differ in how high they rate."""
    rows = found.rows
    aspect = found.labels.aspect
    names, table = by_person(
        [row.single(aspect) for row in rows],
        [row.raters.get(aspect, ()) for row in rows],
    )
    if len(names) < 2 or found.labels.kind == "preference":
        return
    counts = (~np.isnan(table)).sum(axis=0)
    if gave_most(counts):
        yield (
            f"{names[int(counts.argmax())]} gave {counts.max()} of {counts.sum()} labels; agreement is mostly "
            "with this one person"
        )
    share = between_raters(table)
    within, raters = within_raters(found.percents, table, FEWEST_OF_RATER)
    if share > DIFFERENT and raters:
        pooled, _ = within_raters(found.percents, found.human[:, None], 2)
        yield (
            f"raters differ in how high they rate ({share:.0%} of the variance); the fit leaves that out, and the "
            f"judge does not follow it: Spearman {within:.2f} within single raters, {pooled:.2f} with all labels"
        )


def on_more_labels(found: Findings, reached: Agreements) -> Iterator[str]:
    """Yield what more labels would gain beside a judge whose scores are weighed, by what these gained."""
    error = reached.lead.error
    if not (found.final.judge.method.columns() and found.objective.name == "q"):
        return
    plan = "`judgesmith check FILE --plan` reads what more labels would gain off the labels themselves"
    if reached.lead.reason or not error > 0:
        yield plan
        return
    labels = len(found.seen)
    learnt = labels * (1 - 1 / found.folds) if found.folds else labels
    lead = reached.lead.value, error
    told = curve_of_lead(labels, learnt, reached.zero_shot.value, lead)
    yield f"{told} {plan}"


def on_suggested(found: Findings) -> Iterator[str]:
    """Yield what rows that `suggest` chose are used for."""
    labels = found.labels
    rows = len(found.rows)
    suggested = found.suggested
    if labels.suggested.any() and not suggested:
        yield (
            f"{labels.suggested.sum()} of {len(labels)} labels are of rows that `suggest` chose: they "
            f"are learnt from, and agreement and intervals rest on {rows} rows that were drawn otherwise"
        )
    if suggested:
        yield (
            f"{suggested} of the {rows} rows that agreement is measured on were chosen by `suggest` and not "
            "drawn at random: agreement on others may be higher or lower, and intervals do not promise it; label "
            "some rows in a random order (`label --order random`)"
        )


def on_answers(found: Findings) -> Iterator[str]:
    """Yield what went wrong in task inference, and how many answers were repaired."""
    inference = found.final.inference
    for note in () if inference is None else inference.notes:
        yield f"task inference: {note}"
    repaired = sum(verdict.repaired for verdict in found.verdicts)
    if repaired:
        yield f"{repaired} of {len(found.rows)} held-out answers did not have the asked form and were repaired"


def on_agreement(found: Findings, reached: Agreements) -> Iterator[str]:
    """Yield what the held-out agreement says of the judge, and what it cannot say."""
    heldout = reached.compiled
    surface = reached.surface
    rows = len(found.rows)
    label = found.objective.label
    chance = found.objective.chance
    documents = len({row.group for row in found.rows})
    if documents < FEW_DOCUMENTS:
        more = "hold out more (--heldout), cross-validate (--cv), or "
        if found.folds:
            more = ""
        yield (
            f"the {rows} rows that agreement is measured on come from only {documents} documents: the interval, "
            f"which resamples documents, is very wide; {more}label more documents"
        )
    if heldout.high < chance:
        yield (
            f"WARNING: this judge runs against people: the interval of its held-out agreement, {label} "
            f"{heldout.span}, lies below {chance:g}: the better a text, the lower its score. Do not use "
            "it, and see whether the labels, or a signal, say more for better texts"
        )
    if heldout.low <= chance <= heldout.high:
        yield (
            f"the interval of the held-out agreement holds {chance:g}: this judge cannot be distinguished from one "
            f"that guesses; {rows} rows are too few to tell, so do not rely on it (more labels tell more; a "
            "stronger model, or your own --task and --criteria, may agree better)"
        )
    if surface.value >= heldout.value and not surface.reason:
        yield (
            "length, overlap with the source and repetition alone, weighed by the same labels without any model, "
            f"reach {label} {surface.span} on the held-out rows: the judge is no better than that"
        )
    if heldout.reason:
        yield f"held-out agreement: {heldout.reason}"


def on_search(found: Findings) -> Iterator[str]:
    """Yield what the search chose, and why."""
    final = found.final
    if final.record.reason:
        yield f"the search: {final.record.reason}"
    if final.forms and not max(final.forms, key=FormTrial.preference).knowledge:
        yield (
            "the inferred task and criteria were left out of the prompt: on the training rows the model judged "
            "better without them (a stronger model, or --task and --criteria in your words, may do better)"
        )
    yield from final.tried()
    unfit = final.record.selected.disqualified
    if unfit:
        yield f"no candidate was fit to be chosen; the least bad one is kept, though {unfit}"
    if found.stopped:
        yield f"the search ended early: {found.stopped}"
