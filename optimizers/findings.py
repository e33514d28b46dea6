"""What a compile run found, written up: the report with its notes, and the provenance that an artifact keeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..agreement.conformal import coverage_of
from ..agreement.decisions import auc, balanced_accuracy, interval, pairwise_accuracy, weighted_kappa
from ..agreement.objectives import Objective
from ..datasets.records import Labels, Row
from ..datasets.splits import Split
from ..programs.models.lm import Capabilities
from ..programs.sureness import COVERAGE, Sureness
from ..signatures.values import Scale, ScoreInterval, Usage, Verdict
from .examples import Agreement, Scored, Vector, agreement, difference, examples_of
from .fitting.decision import places_of
from .fitting.readings import surface_percents
from .fitting.sureness import calibrated_without, fit_sureness
from .report import CompileReport, Fitted, FormTrial, json_number
from .seen import marks

#: With fewer held-out groups an interval over groups says next to nothing.
FEW_GROUPS = 8
#: Raw scores, scores on the user's scale, human ratings and groups of some rows.
Told = tuple[Vector, Vector, Vector, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Measured:
    """What was fitted to the training rows of one part, and how that and the zero-shot judge scored its held-out
    rows."""

    fitted: Fitted
    split: Split
    compiled: Scored
    zero_shot: Scored


@dataclass(frozen=True, slots=True)
class Findings:
    """All that one compile run found out.

    parts: one, or the folds of cross-validation, which are two at least. final: the fit that the judge comes from.
    asked: folds were asked for, and not taken since there are few labels.
    """

    labels: Labels
    parts: Sequence[Measured]
    final: Fitted
    objective: Objective
    seed: int
    asked: bool

    @property
    def _crossed(self) -> bool:
        return len(self.parts) > 1

    @property
    def _folds(self) -> int:
        return len(self.parts) if self._crossed else 0

    @property
    def _seen(self) -> Labels:
        """What the judge was compiled from."""
        return self.labels if self._crossed else self.parts[0].split.train

    @property
    def _rows(self) -> list[Row]:
        return [row for part in self.parts for row in part.split.heldout.rows]

    @property
    def _verdicts(self) -> list[Verdict]:
        return [verdict for part in self.parts for verdict in part.compiled.verdicts]

    def sureness(self) -> Sureness | None:
        """How sure the judge's scores are: from the held-out rows, and from the training rows where these were not held
        out in another fold."""
        told = [self._told_heldout(part) for part in self.parts]
        if not self._crossed:
            told.append(self._told_train(self.parts[0]))
        return self._sureness(told)

    def _sureness(self, told: Sequence[Told]) -> Sureness | None:
        percent, score, human = (np.concatenate([part[k] for part in told]) for k in range(3))
        groups = [group for part in told for group in part[3]]
        return fit_sureness(percent, score, human, groups, Scale(*self.labels.scale))

    def _told_heldout(self, part: Measured) -> Told:
        scores = np.array([math.nan if v.failure else v.score for v in part.compiled.verdicts], dtype=float)
        return part.compiled.percents, scores, part.split.heldout.scores, part.split.heldout.groups

    def _told_train(self, part: Measured) -> Told:
        percents, train = part.fitted.percents, part.split.train
        scores = calibrated_without(percents, train.scores, train.groups, Scale(*train.scale), seed=self.seed)
        return percents, scores, train.scores, train.groups

    def _how_sure(self) -> dict[str, Any] | None:
        """Width of the intervals on the held-out rows, and what intervals from training rows alone hold of these."""
        sure = self.sureness()
        if sure is None:
            return None
        scale, held = Scale(*self.labels.scale), [self._told_heldout(part) for part in self.parts]
        widths = [i.high - i.low for part in held for i in _intervals(sure, part, scale)[0]]
        told: dict[str, Any] = {"coverage": COVERAGE, "width": None, "rows": sure.rows, "documents": sure.documents}
        told |= {"heldout_covered": None, "heldout_rows": None}
        if widths:
            told["width"] = round(float(np.mean(widths)), 6)
        without = None if self._crossed else self._sureness([self._told_train(self.parts[0])])
        if without is not None and widths:
            found, human = _intervals(without, held[0], scale)
            share = coverage_of([i.low for i in found], [i.high for i in found], human)
            told |= {"heldout_covered": json_number(share), "heldout_rows": len(found)}
        return told

    @property
    def _stopped(self) -> str | None:
        """Why a search ended early, if one did."""
        return next((p.fitted.record.stopped for p in self.parts if p.fitted.record.stopped), self.final.record.stopped)

    def report(self, usage: Usage, seconds: float) -> CompileReport:
        """Agreement on the held-out rows, by raw percents: calibrated scores, mapped as different folds learnt it,
        would order rows by their fold."""
        examples = [example for part in self.parts for example in examples_of(part.split.heldout)]
        compiled = np.concatenate([part.compiled.percents for part in self.parts])
        plain = np.concatenate([part.zero_shot.percents for part in self.parts])
        human = np.concatenate([part.split.heldout.scores for part in self.parts])
        scale = Scale(*self.labels.scale)
        found = agreement(compiled, examples, objective=self.objective, seed=self.seed)
        zero = agreement(plain, examples, objective=self.objective, seed=self.seed)
        gap = difference(compiled, plain, examples, objective=self.objective, seed=self.seed)
        counted = np.concatenate(
            [surface_percents(examples_of(p.split.train), examples_of(p.split.heldout)) for p in self.parts]
        )
        surface = agreement(counted, examples, objective=self.objective, seed=self.seed)
        mapped = np.array([v.score for v in self._verdicts], float)
        linear = np.array([scale.from_percent(p) for p in compiled.tolist()], float)
        record = self.final.record
        return CompileReport(
            heldout=found,
            zero_shot=zero,
            difference=(gap.value, gap.low, gap.high, gap.p),
            surface=surface,
            readings=self._readings,
            decisions=self._decisions(compiled),
            sureness=self._how_sure(),
            folds=self._folds,
            train_rows=len(self._seen),
            heldout_rows=len(examples),
            selected=self._selected(),
            candidates=tuple(c.to_dict() for c in record.candidates),
            notes=tuple(self._notes(found, zero, surface)),
            usage=usage,
            seconds=seconds,
            calibrated_error=_mean_error(mapped, human),
            uncalibrated_error=_mean_error(linear, human),
            stopped=self._stopped,
            record=record,
            heldout_predictions=tuple(
                {
                    "id": row.id,
                    "human": float(h),
                    "percent": json_number(v.percent),
                    "score": json_number(v.score),
                    "zero_shot_percent": json_number(float(z)),
                    "explanation": v.explanation,
                    "failure": v.failure,
                }
                for row, h, v, z in zip(self._rows, human.tolist(), self._verdicts, plain.tolist(), strict=True)
            ),
        )

    def provenance(
        self,
        report: CompileReport,
        *,
        optimizer: dict[str, Any],
        capabilities: Capabilities,
        cost: dict[str, int],
    ) -> dict[str, Any]:
        """What an artifact says of where it comes from. cost: calls and tokens, as they would be without a cache."""
        final, seen, said = self.final, self._seen, report.to_dict()
        return {
            "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "versions": {name: _version(name) for name in ("judgesmith", "dspy")},
            "labels": {
                "origin": self.labels.origin,
                "aspect": self.labels.aspect,
                "rows": len(self.labels),
                "train": len(seen),
                "heldout": report.heldout_rows,
                "fingerprint": self.labels.fingerprint(),
                "scale": "given" if self.labels.scale_given else "inferred",
            },
            "optimizer": optimizer,
            "objective": self.objective.name,
            "seed": self.seed,
            "forms": [
                {**f.form.values, "knowledge": f.knowledge, "q": f.agreement.to_dict()["value"]} for f in final.forms
            ],
            "task_inference": None
            if final.inference is None
            else {
                "batches": final.inference.batches,
                "complete": final.inference.complete,
                "notes": list(final.inference.notes),
            },
            "candidates": said["candidates"],
            "augmentation": None if final.augmentation is None else final.augmentation.to_dict(),
            **{refinement.name: refinement.details for refinement in final.refined},
            "selected": report.selected,
            "heldout": said["heldout"] | {"cross_validated": self._crossed, "folds": self._folds},
            "zero_shot": said["zero_shot"],
            "difference": said["difference"],
            "surface": said["surface"],
            **({} if report.decisions is None else {"decisions": report.decisions}),
            "mean_absolute_error": said["mean_absolute_error"],
            "sureness": said["sureness"],
            "notes": said["notes"],
            "capabilities": asdict(capabilities),
            "cost": cost,
            **marks(seen.rows),
        }

    def _selected(self) -> dict[str, Any]:
        """What the judge is, with its agreement on the training rows: Q, and the objective (`value`; `corrected` for
        having been chosen)."""
        record = self.final.record
        told: dict[str, Any] = {"demos": record.selected.demos}
        instead = next((r for r in self.final.refined if r.changed and r.candidate), None)
        if instead is not None:
            told |= {"candidate": instead.candidate, "kind": instead.name}
            told |= {name: instead.details[name] for name in told if name in instead.details}
        else:
            corrected = None if record.corrected is None else json_number(record.corrected.value)
            told |= {"candidate": record.selected.name, "kind": record.selected.kind}
            return told | self._on_training_rows(record.selected.agreement, corrected)
        train = examples_of(self._seen)
        found = agreement(self.final.percents, train, objective=self.objective, seed=self.seed, rounds=0)
        return told | self._on_training_rows(found, None)

    def _on_training_rows(self, found: Agreement, corrected: float | None) -> dict[str, Any]:
        said, by = found.to_dict(), self.objective.name
        return {
            **{name: said[name] for name in ("objective", "value", "q")},
            "corrected": corrected,
            "q_corrected": corrected if by == "q" else None,
        }

    def _decisions(self, percents: NDArray[np.float64]) -> dict[str, Any] | None:
        """Agreement of decisions on the held-out rows, each decided by the cuts of its own part."""
        if self.labels.kind == "score":
            return None
        usable = np.flatnonzero(np.isfinite(percents))
        rows = [self._rows[i] for i in usable]
        groups, x = [row.group for row in rows], percents[usable]
        if self.labels.kind == "preference":
            human = np.array([row.scores[self.labels.aspect] for row in rows], float)
            documents = [row.doc_id for row in rows]

            def ordered(i: NDArray[np.intp]) -> float:
                return pairwise_accuracy(x[i], human[i], [documents[j] for j in i.tolist()])

            measures: Mapping[str, Callable[[NDArray[np.intp]], float]] = {"pairwise_accuracy": ordered}
        else:
            measures = self._of_categories(usable, x)
        found: dict[str, Any] = {"kind": self.labels.kind, "n": len(rows), "failed": len(percents) - len(rows)}
        if (decision := self.final.judge.decision) is not None:
            found |= {"categories": list(decision.names), "cuts": list(decision.cuts)}
        for name, measure in measures.items():
            low, high = interval(measure, groups, seed=self.seed)
            value = measure(np.arange(len(rows)))
            found[name] = {"value": json_number(value), "low": json_number(low), "high": json_number(high)}
        return found

    def _of_categories(
        self, usable: NDArray[np.intp], x: NDArray[np.float64]
    ) -> dict[str, Callable[[NDArray[np.intp]], float]]:
        """The measures of decisions between categories, as functions of some of the `usable` rows."""
        decided = [part.fitted.judge.decision for part in self.parts for _ in part.compiled.verdicts]
        ours = np.array([d.place(p) for d, p in zip((decided[i] for i in usable), x.tolist(), strict=True) if d], int)
        people = np.concatenate([places_of(part.split.heldout) for part in self.parts])[usable]
        if self.labels.kind == "binary":
            return {
                "balanced_accuracy": lambda i: balanced_accuracy(ours[i], people[i]),
                "auc": lambda i: auc(x[i], people[i]),
            }
        count = len(self.labels.levels)
        return {
            "weighted_kappa": lambda i: weighted_kappa(ours[i], people[i], count),
            "accuracy": lambda i: float((ours[i] == people[i]).mean()),
        }

    @property
    def _readings(self) -> tuple[dict[str, Any], ...]:
        """What the readings weigh in the judge; nothing for judges without."""
        return next((r.weights for r in self.final.refined if r.weights), ())

    def _notes(self, found: Agreement, zero_shot: Agreement, surface: Agreement) -> list[str]:
        final, verdicts = self.final, self._verdicts
        notes = list(self.labels.warnings)
        if self._crossed:
            why = "" if self.asked else f"{len(self.labels)} labels are too few for a held-out part: "
            notes.append(
                f"{why}agreement is cross-validated ({self._folds} folds), each fold judged by a judge compiled without"
                f" it; the saved judge is compiled from all {len(self.labels)} labels"
            )
        if final.inference is not None:
            notes += [f"task inference: {note}" for note in final.inference.notes]
        if (repaired := sum(v.repaired for v in verdicts)) > 0:
            notes.append(
                f"{repaired} of {len(verdicts)} held-out answers did not have the asked form and were repaired"
            )
        count = len({row.group for row in self._rows})
        if count < FEW_GROUPS:
            notes.append(
                f"the {len(verdicts)} rows that agreement is measured on come from only {count} documents: the "
                "interval, which resamples documents, is very wide; "
                + ("" if self._crossed else "hold out more (--heldout), cross-validate (--cv), or ")
                + "label more documents"
            )
        if found.low <= self.objective.chance:
            notes.append(
                f"the interval of the held-out agreement reaches {self.objective.chance:g}: this judge cannot be "
                "distinguished from one that guesses; do not rely on it (a stronger model, your own --task and "
                "--criteria, or more labels may help)"
            )
        if surface.value >= found.value and not surface.reason:
            notes.append(
                f"length, overlap with the source and repetition alone, weighed by the same labels without any model, "
                f"reach {self.objective.label} {_span(surface)} on the held-out rows: the judge is no better than that"
            )
        # Nothing was chosen for the zero-shot prompt's sake, so that both parts of the rows speak of it alike.
        training = final.record.candidates[0].agreement
        if not self._crossed and _contradict(training, zero_shot):
            notes.append(
                f"without demonstrations {self.objective.label} is {_span(training)} on the training rows and "
                f"{_span(zero_shot)} on the held-out ones: the documents differ more than the intervals know; believe "
                "neither before more documents are labelled"
            )
        if found.reason:
            notes.append(f"held-out agreement: {found.reason}")
        if final.record.reason:
            notes.append(f"the search: {final.record.reason}")
        if final.forms and not max(final.forms, key=FormTrial.preference).knowledge:
            notes.append(
                "the inferred task and criteria were left out of the prompt: on the training rows the model judged "
                "better without them (a stronger model, or --task and --criteria in your words, may do better)"
            )
        notes += final.tried()
        if final.record.selected.disqualified:
            notes.append(
                f"no candidate was fit to be chosen; the least bad one is kept, "
                f"though {final.record.selected.disqualified}"
            )
        if stopped := self._stopped:
            notes.append(f"the search ended early: {stopped}")
        return notes


def _intervals(sure: Sureness, told: Told, scale: Scale) -> tuple[list[ScoreInterval], list[float]]:
    """The intervals of the rows that have a score, and human ratings of them."""
    rows = [(p, s, h) for p, s, h in zip(*(part.tolist() for part in told[:3]), strict=True) if math.isfinite(s)]
    found = [sure.interval(p, s, scale) for p, s, _ in rows]
    return [interval for interval in found if interval is not None], [h for *_, h in rows]


def _contradict(one: Agreement, other: Agreement) -> bool:
    """Whether each lies outside the other's interval, by more than rounding."""
    slack = 1e-6
    return not any(a.low - slack <= b.value <= a.high + slack for a, b in ((one, other), (other, one)))


def _span(found: Agreement) -> str:
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _mean_error(scores: np.ndarray[Any, Any], human: np.ndarray[Any, Any]) -> float:
    usable = np.isfinite(scores)
    return float(np.abs(scores[usable] - human[usable]).mean()) if usable.any() else math.nan


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
