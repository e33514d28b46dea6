"""Findings of a compile run: the report with its notes, and the provenance that an artifact keeps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from itertools import chain, islice, repeat
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from judgesmith.agreement.correlation import Codes, Level, id_codes
from judgesmith.agreement.decisions import (
    accuracy_when_drawn,
    auc_when_drawn,
    balanced_when_drawn,
    kappa_when_drawn,
    pairwise_when_drawn,
)
from judgesmith.agreement.differences import Difference
from judgesmith.agreement.meta.inputs import FEW_DOCUMENTS
from judgesmith.agreement.metric import AgreementValue
from judgesmith.agreement.objectives import Objective, Q
from judgesmith.agreement.raters import (
    DIFFERENT,
    between_raters,
    by_person,
    gave_most,
    within_raters,
)
from judgesmith.agreement.replacement import way_to_rater
from judgesmith.agreement.resampling import Bounded, Estimate, Range, estimates_of
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
    humans,
)
from judgesmith.optimizers.fitting.outcome import (
    calibrated_without,
    fit_sureness,
    places_of,
)
from judgesmith.optimizers.fitting.readings import surface_percents
from judgesmith.optimizers.levels import LEVELS, Levels, levels_of, system_means
from judgesmith.optimizers.report import CompileReport, Fitted, FormTrial
from judgesmith.optimizers.seen import marks
from judgesmith.programs.contract import Contract, Question
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.names import recorded
from judgesmith.programs.outcome import COVERAGE, Sureness
from judgesmith.signatures.values import Scale, Usage, Verdict, json_number
from judgesmith.wording import word_count

#: Rows of a rater that agreement within raters takes at least, of the few that are labelled.
FEWEST_OF_RATER = 5
#: The objectives that measures of raw scores are.
MEASURED = {"auc": "auc", "pairwise_accuracy": "pairwise"}
#: Raw scores, scores on the user's scale, human ratings and groups of some rows.
Judged = tuple[Vector, Vector, Vector, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Measured:
    """A fit to the training rows of one part, with its scores and the zero-shot judge's of the held-out rows."""

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

    # -- the held-out rows

    @cached_property
    def rows(self) -> list[Row]:
        """Return the held-out rows of all parts."""
        return [row for part in self.parts for row in part.split.heldout.rows]

    @cached_property
    def examples(self) -> list[dspy.Example]:
        """Return the held-out rows of all parts as DSPy examples."""
        return [
            example
            for part in self.parts
            for example in examples_of(part.split.heldout)
        ]

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

    def _predictions(self, human: Vector) -> Iterator[dict[str, Any]]:
        """Yield each row that agreement was measured on, as JSON values.

        Args:
            human: The rows' human scores.
        """
        plain = np.concatenate([part.zero_shot.percents for part in self.parts])
        judged = zip(
            self.rows, human.tolist(), self.verdicts, plain.tolist(), strict=True
        )
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

    def report(self, usage: Usage, seconds: float) -> CompileReport:
        """Return the report of the run.

        Args:
            usage: Calls and tokens of the whole run.
            seconds: Its time.
        """
        human = np.concatenate([part.split.heldout.scores for part in self.parts])
        scores = np.array([verdict.score for verdict in self.verdicts], float)
        to_scale = Scale(*self.labels.scale).from_percent
        linear = np.array(list(map(to_scale, self.percents.tolist())), float)
        weights = (refined.weights for refined in self.final.refined)
        heldout, zero_shot, surface, gap = self._compared()
        levels = self._levels()
        return CompileReport(
            heldout=heldout,
            zero_shot=zero_shot,
            difference=lead(gap),
            surface=surface,
            levels=levels,
            readings=next(filter(None, weights), ()),
            decisions=self._decisions(heldout),
            way=self._way(),
            sureness=self._sureness_facts(),
            folds=self.folds,
            runs=len(self.runs),
            train_rows=len(self.seen),
            heldout_rows=len(self.rows),
            selected=self._selected(),
            candidates=tuple(c.to_dict() for c in self.final.record.candidates),
            notes=(*self._notes(heldout, zero_shot, surface), *levels.notes(heldout)),
            usage=usage,
            seconds=seconds,
            calibrated_error=_mean_error(scores, human),
            uncalibrated_error=_mean_error(linear, human),
            stopped=self._stopped,
            drawn_from=self._drawn_from(),
            heldout_predictions=tuple(self._predictions(human)),
        )

    def _compared(
        self,
    ) -> tuple[AgreementValue, AgreementValue, AgreementValue, Difference]:
        """Return the agreement of the compiled judge, the zero-shot one and one without a model, and the first's lead.

        The lead is over the zero-shot judge. With folds, the numbers cover all runs.
        """
        of: dict[str, Any] = {
            "objective": self.objective,
            "seed": self.seed,
            "new_systems": self.new_systems,
        }
        judges: list[list[AgreementValue]] = [[], [], []]
        gaps = list[Difference]()
        for run in self.runs:
            examples = [
                example for part in run for example in examples_of(part.split.heldout)
            ]
            compiled = percents_of_run(run)
            plain = np.concatenate([part.zero_shot.percents for part in run])
            for found, percents in zip(
                judges, (compiled, plain, moved_run(run, surface_percents)), strict=True
            ):
                found.append(agreement(percents, examples, **of))
            gaps.append(difference(compiled, plain, examples, **of))
        if not self.folds:
            return judges[0][0], judges[1][0], judges[2][0], gaps[0]
        compiled_judge, zero_shot, surface = map(crossed_agreement, judges)
        return compiled_judge, zero_shot, surface, crossed_difference(gaps)

    def _levels(self) -> Levels:
        """Agreement within systems and documents, and that of the systems' mean labels; of folds, over all runs."""
        levels = levels_of(self.objective, self.examples)
        inside: dict[Level, list[AgreementValue]] = {level: [] for level in levels}
        means = list[AgreementValue]()
        of: dict[str, Any] = {"seed": self.seed, "new_systems": self.new_systems}
        for run in self.runs:
            examples = [
                example for part in run for example in examples_of(part.split.heldout)
            ]
            for level, by_level in inside.items():
                by_level.append(
                    agreement(percents_of_run(run), examples, objective=Q(level), **of)
                )
            if "within" in inside:
                means.append(
                    agreement(
                        moved_run(run, system_means),
                        examples,
                        objective=self.objective,
                        **of,
                    )
                )
        return Levels(
            {level: self._over_runs(by_level) for level, by_level in inside.items()},
            self._over_runs(means) if means else None,
        )

    def _over_runs(self, measured: Sequence[AgreementValue]) -> AgreementValue:
        """Return the agreement over all runs of folds, or that of the single split."""
        return crossed_agreement(measured) if self.folds else measured[0]

    def provenance(
        self,
        report: CompileReport,
        *,
        optimizer: dict[str, Any],
        lm: LanguageModel,
        cost: dict[str, int],
    ) -> dict[str, Any]:
        """Return an artifact's record of its origin.

        Args:
            report: The report of the run.
            optimizer: Name and options of the search.
            lm: The judge's model.
            cost: Calls and tokens, as they would be without a cache.
        """
        final = self.final
        data = report.to_dict()
        inference = self.final.inference
        shared = [
            "candidates",
            "selected",
            "zero_shot",
            "difference",
            "surface",
            "sureness",
            "way",
            "notes",
        ]
        levels = filter(data.__contains__, LEVELS)
        return {
            "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "versions": {name: version(name) for name in ("judgesmith", "dspy")},
            "contract": contract_of(self.labels, lm),
            "labels": origin_of(self.labels)
            | {"train": report.train_rows, "heldout": report.heldout_rows},
            "optimizer": optimizer,
            "objective": self.objective.name,
            "seed": self.seed,
            "forms": list(map(_form_fact, final.forms)),
            "task_inference": inference
            and {
                "batches": inference.batches,
                "complete": inference.complete,
                "notes": list(inference.notes),
            },
            **({"criteria_from": report.drawn_from} if report.drawn_from else {}),
            **{refinement.name: refinement.details for refinement in final.refined},
            **{name: data[name] for name in (*shared, *levels, "mean_absolute_error")},
            "heldout": data["heldout"]
            | {
                "cross_validated": self.folds > 0,
                "folds": self.folds,
                "runs": len(self.runs),
            },
            **({} if report.decisions is None else {"decisions": report.decisions}),
            "capabilities": asdict(lm.known_capabilities),
            **({"computed_by": lm.computed_by} if lm.computed_by else {}),
            "cost": cost,
            **marks(self.seen.rows),
        }

    # -- how sure scores are

    @cached_property
    def sureness(self) -> Sureness | None:
        """Fit intervals for the judge's scores.

        Rows are the held-out ones, and training rows that were not held out in another fold, scored by what was chosen
        and mapped without them.
        """
        judged = [_heldout(part) for part in self.parts]
        return self._sureness(judged if self.folds else [*judged, self._training()])

    def _sureness(self, judged: Sequence[Judged]) -> Sureness | None:
        percents, scores, humans, of_rows = zip(*judged, strict=True)
        percent, score, human = map(np.concatenate, (percents, scores, humans))
        groups = list(chain.from_iterable(of_rows))
        return fit_sureness(percent, score, human, groups, Scale(*self.labels.scale))

    def _training(self) -> Judged:
        fitted = self.parts[0].fitted
        train = self.parts[0].split.train
        percents = fitted.percents if fitted.left_out is None else fitted.left_out
        scores = calibrated_without(
            percents, train.scores, train.groups, Scale(*train.scale), seed=self.seed
        )
        if not self._suggested:
            drawn = ~train.suggested
        else:
            drawn = np.ones(len(train), dtype=np.bool_)
        return np.where(drawn, percents, math.nan), scores, train.scores, train.groups

    @property
    def _suggested(self) -> int:
        """Return how many of the held-out rows `suggest` chose: all, or none if the others were enough."""
        return sum(row.suggested for row in self.rows)

    def _sureness_facts(self) -> dict[str, Any] | None:
        """Width of the intervals on the held-out rows, and what they rest on."""
        sure = self.sureness
        scale = Scale(*self.labels.scale)
        if sure is None:
            return None
        widths: list[float] = []
        scored = False
        for part in self.parts:
            percents = part.compiled.percents.tolist()
            verdicts = part.compiled.verdicts
            for percent, verdict in zip(percents, verdicts, strict=True):
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

    # -- what was chosen and decided

    @property
    def _stopped(self) -> str | None:
        """Why a search ended early, if one did."""
        return next(
            (p.fitted.record.stopped for p in self.parts if p.fitted.record.stopped),
            self.final.record.stopped,
        )

    def _selected(self) -> dict[str, Any]:
        """Return the chosen judge's record with its agreement on the training rows.

        It has Q and the objective (`value`; `corrected` for having been chosen).
        """
        record = self.final.record
        by = self.objective
        chosen = {
            "demos": record.selected.demos,
            "candidate": record.selected.name,
            "kind": record.selected.kind,
        }
        reached = record.selected.agreement
        corrected = record.corrected
        corrected = None if corrected is None else json_number(corrected)
        if (
            instead := next(
                (r for r in self.final.refined if r.changed and r.candidate), None
            )
        ) is not None:
            chosen |= {"candidate": instead.candidate, "kind": instead.name}
            train = examples_of(self.seen)
            corrected = None
            reached = agreement(
                self.final.percents, train, objective=by, seed=self.seed, rounds=0
            )
        data = reached.to_dict()
        return {
            **chosen,
            **{name: data[name] for name in ("objective", "value", "q")},
            "corrected": corrected,
            "q_corrected": corrected if by.name == "q" else None,
        }

    def _drawn_from(self) -> dict[str, list[dict[str, str]]]:
        """By criterion of the judge, the comments that it was inferred from, where there were any."""
        inference = self.final.inference
        criteria = self.final.judge.method.knowledge.criteria
        if inference is None or not inference.drawn_from:
            return {}
        comments: dict[str, list[dict[str, str]]] = {}
        for criterion in inference.criteria:
            if criterion in criteria:
                of_it = inference.drawn_from.get(criterion.name, ())
                comments[criterion.name] = [asdict(comment) for comment in of_it]
        return comments

    def _way(self) -> dict[str, Any] | None:
        """Return the judge's place between guessing and one human rater; None if the rows have one rating."""
        singles = [row.ratings.get(self.labels.aspect, ()) for row in self.rows]
        if (raters := max(map(len, singles), default=0)) < 2:
            return None
        table = np.full((len(singles), raters), math.nan)
        for place, ratings in enumerate(singles):
            table[place, : len(ratings)] = ratings
        documents = [row.group for row in self.rows]
        way = way_to_rater(self.percents, table, documents=documents, seed=self.seed)
        found = crossed([way], Range(-math.inf, math.inf)) if self.folds else way
        ends = {
            key: json_number(getattr(found, key)) for key in ("value", "low", "high")
        }
        return {"raters": raters, **ends, "reason": way.reason}

    def _decisions(self, heldout: AgreementValue) -> dict[str, Any] | None:
        """Agreement of decisions on the held-out rows, each decided by the cuts of its own part."""
        if self.labels.kind == "score":
            return None
        usable = np.flatnonzero(np.isfinite(self.percents))
        rows = [self.rows[i] for i in usable]
        figures: dict[str, Any] = {
            "kind": self.labels.kind,
            "n": len(rows),
            "failed": len(self.rows) - len(rows),
        }
        if (decision := self.final.judge.outcome.decision) is not None:
            figures |= {"categories": list(decision.names), "cuts": list(decision.cuts)}
        units = id_codes([row.group for row in rows], len(rows), "groups")
        for name, measure in self._measures(usable, rows, units).items():
            count = int(units.max(initial=-1)) + 1
            (estimate,) = estimates_of(
                measure,
                count,
                [measure.within],
                rounds=1000,
                confidence=0.95,
                seed=self.seed,
            )
            estimate = crossed([estimate], measure.within) if self.folds else estimate
            # one number has one interval
            found: Estimate | AgreementValue
            if MEASURED.get(name) == self.objective.name:
                found = heldout
            else:
                found = estimate
            figures[name] = {
                key: json_number(getattr(found, key)) for key in asdict(estimate)
            }
        return figures

    def _decided(self) -> NDArray[np.intp]:
        """Return the place of the decision on each row, by the judge of its fold; -1 where there is none."""
        places = list[int]()
        percents = iter(self.percents.tolist())
        for part in self.parts:
            decision = part.fitted.judge.outcome.decision
            for percent in islice(percents, len(part.compiled.verdicts)):
                if decision is None or math.isnan(percent):
                    places.append(-1)
                else:
                    places.append(decision.place(percent))
        return np.array(places, int)

    def _measures(
        self, usable: NDArray[np.intp], rows: Sequence[Row], units: Codes
    ) -> dict[str, Bounded]:
        x = self.percents[usable]
        if self.labels.kind == "preference":
            human = np.array([row.scores[self.labels.aspect] for row in rows], float)
            names = [row.doc_id for row in rows]
            by_document = pairwise_when_drawn(x, human, names)
            group = [units[names.index(name)] for name in dict.fromkeys(names)]
            return {
                "pairwise_accuracy": Bounded(
                    lambda counts: by_document(counts[:, group]), by_document.within
                )
            }
        ours = self._decided()[usable]
        placed = [places_of(part.split.heldout) for part in self.parts]
        people = np.concatenate(placed)[usable]
        if self.labels.kind == "binary":
            return {
                "balanced_accuracy": balanced_when_drawn(ours, people, units),
                "auc": auc_when_drawn(x, people, units),
            }
        return {
            "weighted_kappa": kappa_when_drawn(ours, people, units),
            "accuracy": accuracy_when_drawn(ours, people, units),
        }

    # -- in words

    def _notes(
        self,
        heldout: AgreementValue,
        zero_shot: AgreementValue,
        surface: AgreementValue,
    ) -> list[str]:
        final = self.final
        rows = len(self.rows)
        label = self.objective.label
        chance = self.objective.chance
        documents = len({row.group for row in self.rows})
        repaired = sum(v.repaired for v in self.verdicts)
        unfit = final.record.selected.disqualified
        inferred = final.inference.notes if final.inference else ()
        compiled = (
            "each fold judged by a judge compiled without it; the saved judge is compiled from all "
            f"{self.labels.count}, and intervals are wider by what fitting adds"
        )
        if self.again:
            compiled = (
                "each fold judged by the candidate that the other rows choose, no row's own document in its prompt; "
                "--cv 4 searches again without each fold"
            )
        times = f"{self.folds} folds"
        if len(self.runs) > 1:
            times = f"{len(self.runs)} times {times}"
        more = "hold out more (--heldout), cross-validate (--cv), or "
        if self.folds:
            more = ""
        notes: list[tuple[object, str]] = [
            (
                self.folds,
                f"agreement is cross-validated ({times}), {compiled}",
            ),
            *_always(self._chosen_otherwise()),
            *_always(self._against()),
            *_always(self._upside_down(zero_shot)),
            *_always(self._raters()),
            (
                self.labels.suggested.any() and not self._suggested,
                f"{self.labels.suggested.sum()} of {len(self.labels)} labels are of rows that `suggest` chose: they "
                f"are learnt from, and agreement and intervals rest on {rows} rows that were drawn otherwise",
            ),
            (
                self._suggested,
                f"{self._suggested} of the {rows} rows that agreement is measured on were chosen by `suggest` and not "
                "drawn at random: agreement on others may be higher or lower, and intervals do not promise it; label "
                "some rows in a random order (`label --order random`)",
            ),
            *_always(map("task inference: {}".format, inferred)),
            (
                repaired,
                f"{repaired} of {rows} held-out answers did not have the asked form and were repaired",
            ),
            (
                documents < FEW_DOCUMENTS,
                f"the {rows} rows that agreement is measured on come from only {documents} documents: the interval, "
                f"which resamples documents, is very wide; {more}label more documents",
            ),
            (
                heldout.high < chance,
                f"WARNING: this judge runs against people: the interval of its held-out agreement, {label} "
                f"{heldout.span}, lies below {chance:g}: the better a text, the lower its score. Do not use "
                "it, and see whether the labels, or a signal, say more for better texts",
            ),
            (
                heldout.low <= chance <= heldout.high,
                f"the interval of the held-out agreement holds {chance:g}: this judge cannot be distinguished from one "
                f"that guesses; {rows} rows are too few to tell, so do not rely on it (more labels tell more; a "
                "stronger model, or your own --task and --criteria, may agree better)",
            ),
            (
                surface.value >= heldout.value and not surface.reason,
                "length, overlap with the source and repetition alone, weighed by the same labels without any model, "
                f"reach {label} {surface.span} on the held-out rows: the judge is no better than that",
            ),
            (heldout.reason, f"held-out agreement: {heldout.reason}"),
            (final.record.reason, f"the search: {final.record.reason}"),
            (
                final.forms
                and not max(final.forms, key=FormTrial.preference).knowledge,
                "the inferred task and criteria were left out of the prompt: on the training rows the model judged "
                "better without them (a stronger model, or --task and --criteria in your words, may do better)",
            ),
            *_always(final.tried()),
            (
                unfit,
                f"no candidate was fit to be chosen; the least bad one is kept, though {unfit}",
            ),
            (self._stopped, f"the search ended early: {self._stopped}"),
        ]
        return [*self.labels.warnings, *(note for holds, note in notes if holds)]

    def _upside_down(self, zero_shot: AgreementValue) -> Iterator[str]:
        """Yield a sentence for each sign that knows nothing of the labels and runs against them.

        A scale whose lowest number is the best looks like that, whatever its column is called.
        """
        chance = self.objective.chance
        reach = self.objective.reach
        advice = "if the lowest number is the best one, reverse the labels"
        asked = (
            not self.final.judge.method.columns()
        )  # signals have a sentence of their own
        if asked and zero_shot.high < chance and zero_shot.value <= chance - reach / 4:
            yield (
                "WARNING: the model's own scores, before it learnt anything, run against these labels: "
                f"{self.objective.label} {zero_shot.span}; {advice}"
            )
        if self.labels.kind == "preference":
            return
        lengths = np.array([word_count(row.output) for row in self.labels.rows], float)
        by_length = agreement(
            100 * lengths / max(1.0, lengths.max()),
            examples_of(self.labels),
            objective=self.objective,
            seed=self.seed,
        )
        if by_length.high < chance and by_length.value <= chance - reach / 2:
            yield (
                f"the longer an output, the lower its label ({self.objective.label} {by_length.span} with its "
                f"words); this may be right, but {advice}"
            )

    def _chosen_otherwise(self) -> Iterator[str]:
        """Yield a sentence where folds chose another kind of judge than the fit to all labels: it is not measured."""
        if not self.folds:
            return
        saved = self.final.way
        others = Counter(part.fitted.way for part in self.parts)
        del others[saved]
        if others:
            chosen = ", ".join(
                f"{n} of {self.folds} folds chose {way}" for way, n in others.items()
            )
            yield (
                f"{chosen}, the saved judge is {saved}: the agreement is that of the folds' judges, and the saved "
                "one's may differ"
            )

    def _raters(self) -> Iterator[str]:
        """Yield a sentence where one rater gave most labels, and one where raters differ in how high they rate."""
        rows = self.rows
        aspect = self.labels.aspect
        names, table = by_person(
            [row.single(aspect) for row in rows],
            [row.raters.get(aspect, ()) for row in rows],
        )
        if len(names) < 2 or self.labels.kind == "preference":
            return
        counts = (~np.isnan(table)).sum(axis=0)
        if gave_most(counts):
            yield (
                f"{names[int(counts.argmax())]} gave {counts.max()} of {counts.sum()} labels; agreement is mostly "
                "with this one person"
            )
        share = between_raters(table)
        within, raters = within_raters(self.percents, table, FEWEST_OF_RATER)
        if share > DIFFERENT and raters:
            pooled, _ = within_raters(self.percents, self._human[:, None], 2)
            yield (
                f"raters differ in how high they rate ({share:.0%} of the variance); the fit leaves that out, and the "
                f"judge does not follow it: Spearman {within:.2f} within single raters, {pooled:.2f} with all labels"
            )

    @property
    def _human(self) -> Vector:
        """The human ratings of the held-out rows."""
        return np.array([row.scores[self.labels.aspect] for row in self.rows])

    def _against(self) -> list[str]:
        """A sentence on each signal that human ratings fall with, on all labels: nothing is fitted to its scale."""
        notes = list[str]()
        examples = examples_of(self.labels)
        for column in self.final.judge.method.columns():
            values = [
                column.percent(column.value(row.columns)) for row in self.labels.rows
            ]
            surface = agreement(
                np.array(values), examples, objective=self.objective, seed=self.seed
            )
            if surface.high < self.objective.chance:
                notes.append(
                    f"WARNING: signal {column.name} runs against people: {self.objective.label} {surface.span} on "
                    f"these labels; if lower is better, say so: --signal {column.turned}"
                )
        return notes


def lead(gap: Difference) -> tuple[float, float, float, float]:
    """Return a difference with its interval and p; NaN where it is the same in every resample, which says nothing."""
    if gap.high - gap.low < 1e-9:
        return gap.value, math.nan, math.nan, math.nan
    return gap.value, gap.low, gap.high, gap.p


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


def _heldout(part: Measured) -> Judged:
    scores = np.array(
        [math.nan if v.failure else v.score for v in part.compiled.verdicts],
        dtype=float,
    )
    return (
        part.compiled.percents,
        scores,
        part.split.heldout.scores,
        part.split.heldout.groups,
    )


def _always(notes: Iterable[str]) -> Iterator[tuple[object, str]]:
    """Notes with the condition that always holds."""
    return zip(repeat(True), notes, strict=False)


def _form_fact(trial: FormTrial) -> dict[str, Any]:
    """A form of answers that was tried, as an artifact records it."""
    q = trial.agreement.to_dict()["value"]
    return {**trial.form.values, "knowledge": trial.knowledge, "q": q}


def _mean_error(scores: Vector, human: Vector) -> float:
    usable = np.isfinite(scores)
    if usable.any():
        return float(np.abs(scores[usable] - human[usable]).mean())
    return math.nan
