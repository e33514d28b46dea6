"""Write up a compile run: the report with its notes, and the provenance that an artifact keeps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from judgesmith.datasets.records import Labels
from judgesmith.optimizers.examples import Vector, agreement, examples_of, scale_of
from judgesmith.optimizers.levels import LEVELS
from judgesmith.optimizers.measuring import (
    Findings,
    agreements,
    decisions,
    lead,
    levels,
    plain_percents,
    sureness_facts,
    way,
)
from judgesmith.optimizers.notes import notes_on
from judgesmith.optimizers.report import CompileReport, FormTrial
from judgesmith.optimizers.seen import marks
from judgesmith.programs.contract import Contract, Question
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.names import recorded
from judgesmith.signatures.values import Usage, json_number

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
