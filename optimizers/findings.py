"""Write up a compile run: the report with its notes, and the provenance that an artifact keeps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

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
from judgesmith.datasets.records import Labels
from judgesmith.optimizers.examples import Vector, agreement, examples_of, scale_of
from judgesmith.optimizers.fitting.curve import curve_of_lead
from judgesmith.optimizers.levels import LEVELS
from judgesmith.optimizers.measuring import (
    Agreements,
    Findings,
    agreements,
    decisions,
    lead,
    levels,
    plain_percents,
    sureness_facts,
    way,
)
from judgesmith.optimizers.report import CompileReport, FormTrial
from judgesmith.optimizers.seen import marks
from judgesmith.programs.contract import Contract, Question
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.names import recorded
from judgesmith.signatures.values import Usage, json_number
from judgesmith.wording import word_count

#: What a provenance has of a report, as the report has it.
REPORTED = (
    "candidates",
    "selected",
    "zero_shot",
    "difference",
    "surface",
    "sureness",
    "way",
    "notes",
)

# The report -----------------------------------------------------------------------------------------------------------


def report_on(found: Findings, usage: Usage, seconds: float) -> CompileReport:
    """Return the report of a run.

    Args:
        found: What the run found out.
        usage: Calls and tokens of the whole run.
        seconds: Its time.
    """
    reached = agreements(found)
    inside = levels(found)
    human = found.human
    final = found.final
    scores = np.array([verdict.score for verdict in found.verdicts], float)
    scale = scale_of(found.labels)
    linear = np.array([scale.from_percent(p) for p in found.percents.tolist()], float)
    weighed = [r.weights for r in final.refined if r.weights]
    notes = (*notes_on(found, reached), *inside.notes(reached.compiled))
    return CompileReport(
        heldout=reached.compiled,
        zero_shot=reached.zero_shot,
        difference=lead(reached.lead),
        surface=reached.surface,
        levels=inside,
        readings=weighed[0] if weighed else (),
        decisions=decisions(found, reached.compiled),
        way=way(found),
        sureness=sureness_facts(found),
        folds=found.folds,
        runs=len(found.runs),
        train_rows=len(found.seen),
        heldout_rows=len(found.rows),
        selected=_selected(found),
        candidates=tuple(c.to_dict() for c in final.record.candidates),
        notes=notes,
        usage=usage,
        seconds=seconds,
        calibrated_error=_mean_error(scores, human),
        uncalibrated_error=_mean_error(linear, human),
        stopped=found.stopped,
        drawn_from=_drawn_from(found),
        heldout_predictions=tuple(_predictions(found)),
    )


def _predictions(found: Findings) -> Iterator[dict[str, Any]]:
    """Yield each row that agreement was measured on, as JSON values."""
    plain = plain_percents(found.parts).tolist()
    human = found.human.tolist()
    judged = zip(found.rows, human, found.verdicts, plain, strict=True)
    for row, score, verdict, zero_shot in judged:
        yield {
            "id": row.id,
            "human": float(score),
            "percent": json_number(verdict.percent),
            "score": json_number(verdict.score),
            "zero_shot_percent": json_number(float(zero_shot)),
            "explanation": verdict.explanation,
            "failure": verdict.failure,
        }


def _selected(found: Findings) -> dict[str, Any]:
    """Return the chosen judge's record with its agreement on the training rows.

    It has Q and the objective (`value`; `corrected` for having been chosen).
    """
    final = found.final
    by = found.objective
    selected = final.record.selected
    name = selected.name
    kind: str = selected.kind
    reached = selected.agreement
    corrected = final.record.corrected
    for refinement in final.refined:
        if refinement.changed and refinement.candidate:
            name = refinement.candidate
            kind = refinement.name
            train = examples_of(found.seen)
            corrected = None
            reached = agreement(
                final.percents, train, objective=by, seed=found.seed, rounds=0
            )
            break
    corrected = None if corrected is None else json_number(corrected)
    data = reached.to_dict()
    return {
        "demos": selected.demos,
        "candidate": name,
        "kind": kind,
        **{key: data[key] for key in ("objective", "value", "q")},
        "corrected": corrected,
        "q_corrected": corrected if by.name == "q" else None,
    }


def _drawn_from(found: Findings) -> dict[str, list[dict[str, str]]]:
    """By criterion of the judge, the comments that it was inferred from, where there were any."""
    inference = found.final.inference
    method = found.final.judge.method
    if inference is None or not inference.drawn_from:
        return {}
    comments: dict[str, list[dict[str, str]]] = {}
    for criterion in inference.criteria:
        if criterion in method.knowledge.criteria:
            of_it = inference.drawn_from.get(criterion.name, ())
            comments[criterion.name] = [asdict(comment) for comment in of_it]
    return comments


def _mean_error(scores: Vector, human: Vector) -> float:
    usable = np.isfinite(scores)
    if not usable.any():
        return math.nan
    return float(np.abs(scores[usable] - human[usable]).mean())


# The record in an artifact --------------------------------------------------------------------------------------------


def provenance_of(
    found: Findings,
    report: CompileReport,
    *,
    optimizer: Mapping[str, Any],
    lm: LanguageModel,
    cost: Mapping[str, int],
) -> dict[str, Any]:
    """Return an artifact's record of its origin.

    Args:
        found: What the run found out.
        report: The report of the run.
        optimizer: Name and options of the search.
        lm: The judge's model.
        cost: Calls and tokens, as they would be without a cache.
    """
    final = found.final
    inference = found.final.inference
    data = report.to_dict()
    record: dict[str, Any] = {
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "versions": {name: version(name) for name in ("judgesmith", "dspy")},
        "contract": contract_of(found.labels, lm),
        "labels": origin_of(found.labels)
        | {"train": report.train_rows, "heldout": report.heldout_rows},
        "optimizer": dict(optimizer),
        "objective": found.objective.name,
        "seed": found.seed,
        "forms": [_form_fact(trial) for trial in final.forms],
        "task_inference": inference
        and {
            "batches": inference.batches,
            "complete": inference.complete,
            "notes": list(inference.notes),
        },
    }
    if report.drawn_from:
        record["criteria_from"] = report.drawn_from
    record |= {refinement.name: refinement.details for refinement in final.refined}
    levels_told = [name for name in LEVELS if name in data]
    names = [*REPORTED, *levels_told, "mean_absolute_error"]
    record |= {name: data[name] for name in names}
    record["heldout"] = data["heldout"] | {
        "cross_validated": found.folds > 0,
        "folds": found.folds,
        "runs": len(found.runs),
    }
    if report.decisions is not None:
        record["decisions"] = report.decisions
    record["capabilities"] = asdict(lm.known_capabilities)
    if lm.computed_by:
        record["computed_by"] = lm.computed_by
    record["cost"] = dict(cost)
    return record | marks(found.seen.rows)


def _form_fact(trial: FormTrial) -> dict[str, Any]:
    """A form of answers that was tried, as an artifact records it."""
    q = trial.agreement.to_dict()["value"]
    return {**trial.form.values, "knowledge": trial.knowledge, "q": q}


def origin_of(labels: Labels) -> dict[str, Any]:
    """Return an artifact's record of the labels, before any split."""
    return {
        "origin": labels.origin,
        "aspect": labels.aspect,
        "rows": len(labels),
        "fingerprint": labels.fingerprint(),
        "scale": "given" if labels.scale_given else "inferred",
    }


def contract_of(labels: Labels, lm: LanguageModel) -> dict[str, Any]:
    """Return an artifact's contract: how the labels were read, and the model that was measured on them."""
    low, high = labels.scale
    contract = Contract(
        {} if labels.account is None else labels.account.roles,
        Question((), labels.kind, (float(low), float(high)), labels.aspect),
        recorded(lm.name),
        lm.fingerprint,
    )
    return contract.to_dict()


# Notes ----------------------------------------------------------------------------------------------------------------


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
    gained = (reached.lead.value, error)
    told = curve_of_lead(labels, learnt, reached.zero_shot.value, gained)
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
