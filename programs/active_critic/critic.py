"""Active-Critic: a method that learns from labelled examples what is judged and by which criteria, then scores.

Variants: *vanilla* (an overall score from demonstrations only), *coarse* (task and criteria in the prompt, one call),
*fine* (McS-E on every criterion, then OS-E). Paper: "Large Language Models Are Active Critics in NLG Evaluation".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from judgesmith import parts
from judgesmith.errors import CallError, OptionError
from judgesmith.parts import option
from judgesmith.programs.active_critic.choices import CriticChoices
from judgesmith.programs.active_critic.scoring import (
    Combination,
    MultiCriteriaScorer,
    OverallScorer,
    TaskContext,
    mean_score,
)
from judgesmith.programs.active_critic.task import Inference, Inquiry
from judgesmith.programs.capabilities import Form
from judgesmith.programs.method import Cost, Method, Words
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.transport import Message
from judgesmith.programs.prompting.layouts import (
    CriteriaLayout,
    Explain,
    OverallLayout,
    Reading,
)
from judgesmith.programs.prompting.predict import JudgePredict, spent
from judgesmith.programs.refining import Refinement, Refiner, TrainingRows, score_matrix
from judgesmith.programs.registry import methods
from judgesmith.signatures.values import CriterionScore, Item, Verdict

Variant = Literal["vanilla", "coarse", "fine"]
#: Its steps, by the names of their attributes.
STEPS = ("criteria_scorer", "overall_scorer")


@methods.register
class ActiveCritic(Method):
    """A method that infers task and criteria from labels and scores by them.

    Options (`judgesmith list methods active-critic`) are keyword arguments; `variant` may be the first positional one.

    task, criteria: your own text instead of inferred ones. combination: how compiling found the fine variant's scores
    are best combined, where that is neither of the two ways of `combine`.

    >>> ActiveCritic("fine", task="Summarise the report.").options.variant
    'fine'

    Source: Large Language Models Are Active Critics in NLG Evaluation.
    """

    kind: ClassVar[str] = "active-critic"
    about: ClassVar[str] = (
        "learns from labels what is judged and by which criteria; scores with explanations"
    )
    paper: ClassVar[str] = "Large Language Models Are Active Critics in NLG Evaluation"

    class Options(Method.Options):
        variant: Literal[Variant, "auto"] = option(
            "auto",
            "vanilla: demonstrations only; coarse: task and criteria in the prompt; fine: a score for each criterion "
            "first, in a call of its own; auto is coarse, or with a model behind an API or in Ollama fine, where that "
            "agrees clearly better with the labels.",
        )
        explain: Literal[Explain, "auto"] = option(
            "auto",
            "Explanation before the score (the paper's), after it, or none (its ablation); auto measures before and "
            "after on the labels, and takes none for vanilla, whose form in the paper is a bare score.",
        )
        reading: Literal[Reading, "auto"] = option(
            "auto",
            "The stated number (0-100), or the expected digit under the model's probabilities; auto measures both on "
            "the labels, and without labels takes the expectation where the model gives log-probabilities.",
        )
        use_task: bool = option(
            True, "The prompt has the description of the task; no is an ablation."
        )
        use_criteria: bool = option(
            True, "The prompt has the criteria; no is an ablation."
        )
        combine: Literal["os-e", "mean"] = option(
            "os-e",
            "fine: the overall score comes from a call of its own (os-e), or is the mean of the criterion scores.",
        )
        aspect: str = option(
            "",
            "What is scored, in the field's word (fluency); empty is overall quality.",
        )

        @model_validator(mode="after")
        def _possible(self) -> Self:
            if self.variant == "fine" and not self.use_criteria:
                raise OptionError(
                    "the fine variant scores criteria; use_criteria=False needs coarse or vanilla"
                )
            if self.combine == "mean" and self.variant != "fine":
                raise OptionError(
                    "combine='mean' averages criterion scores, which only the fine variant has"
                )
            return self

    options: Options
    fitted_always: ClassVar[bool] = False

    class Fitted(parts.Options):
        combination: Combination | None = option(
            None, "Weights of the criteria and the share of OS-E's score."
        )

    def __init__(
        self, variant: Literal[Variant, "auto"] = "auto", **options: Any
    ) -> None:
        super().__init__(variant=variant, **options)
        self.combination: Combination | None = None

    @classmethod
    def in_words(cls, options: Mapping[str, Any], words: Words) -> Self:
        """Build the method from options and the user's own words.

        Raises:
            OptionError: If neither labels nor words say what is judged.
        """
        if words.library_aspect:
            raise OptionError(
                "--as is for the other methods; active-critic infers criteria (--criteria)"
            )
        if words.labels_aspect is None and not (words.task or words.criteria):
            raise OptionError(
                "without labels to learn it from, say what is judged: --task, --criteria or both"
            )
        if (
            words.labels_aspect is None
            and options.get("variant") == "fine"
            and not words.criteria
        ):
            raise OptionError(
                "the fine variant scores criteria; without labels to infer them from, give --criteria FILE"
            )
        return super().in_words(options, words)

    def build(self) -> None:
        """Make the scoring steps of the variant."""
        for name in STEPS:  # those of another variant
            vars(self).pop(name, None)
        explain = self._explains()[0]
        reading: Reading = (
            "said" if self.options.reading == "auto" else self.options.reading
        )
        if self.options.variant == "fine":
            self.criteria_scorer = MultiCriteriaScorer(explain, reading)
        if self.options.variant != "fine" or self.options.combine == "os-e":
            self.overall_scorer = OverallScorer(explain, reading)

    def _explains(self) -> list[Explain]:
        """Return the possible places of the explanation, the preferred one first.

        The paper's plain vanilla has none.
        """
        if self.options.explain != "auto":
            return [self.options.explain]
        return ["none"] if self.options.variant == "vanilla" else ["before", "after"]

    def settle(self, **form: Any) -> None:
        """Fix variant and form of answers.

        Demonstrations and instructions stay: they are kept as fields, not as texts. Fitted weights go: they were fitted
        to answers of another form.
        """
        self.choose(**({"variant": self._own} | form))
        self.combination = None

    @property
    def _own(self) -> Variant:
        """The variant that it is, or that it begins with where the labels are to decide."""
        return "coarse" if self.options.variant == "auto" else self.options.variant

    # -- compiling

    def inquiry(self) -> Inquiry | None:
        """Return an inquiry if the task or the criteria are still to be inferred; see `capabilities.InfersTask`."""
        if self.options.variant == "vanilla":
            return None
        needs_task = self.options.use_task and not self.knowledge.description
        needs_criteria = self.options.use_criteria and not self.knowledge.criteria
        if not needs_task and not needs_criteria:
            return None
        return Inquiry(self.options.aspect, self.options.use_task)

    def learn(self, inferred: Inference, lm: LanguageModel) -> None:
        """Fill what is not known by what was inferred; see `capabilities.InfersTask`."""
        knowledge = self.knowledge
        knowledge.description = knowledge.description or inferred.description
        knowledge.criteria = knowledge.criteria or inferred.criteria
        if self.options.variant == "auto" and not knowledge.criteria:
            self.choose(variant=self._own)
        if self.options.variant == "fine" and not knowledge.criteria:
            raise OptionError(
                f"{lm.name} named no criteria that could be read ({'; '.join(inferred.notes) or 'empty answers'}); "
                "give them with criteria=… (--criteria FILE), or take a stronger model"
            )

    def forms(self, *, logprobs: bool, model: str = "the model") -> list[Form]:
        """Return readings of the score and places of the explanation; see `capabilities.HasForms`."""
        if self.options.reading == "expected" and not logprobs:
            raise OptionError(
                f"{model} gives no log-probabilities; use reading 'said' or 'auto'"
            )
        explains = self._explains()
        readings = [self.options.reading]
        if self.options.reading == "auto":
            readings = ["expected", "said"] if logprobs else ["said"]
        forms = [
            Form({"explain": explain, "reading": reading})
            for reading in readings
            for explain in explains
        ]
        # Four passes would be one too many: the expectation is tried with both places of the explanation, the number
        # said only with the paper's.
        return forms[:3] if len(forms) == 4 else forms

    def dearer(self) -> dict[str, Any]:
        """Return the fine variant if none was chosen; see `capabilities.HasForms`."""
        if self.options.variant == "auto" and self.options.use_criteria:
            return {"variant": "fine"}
        return {}

    def without_inferred(self) -> Self | None:
        """Return a copy of a coarse judge whose prompts leave out task and criteria; None if they do not show both."""
        both = (
            self._own == "coarse"
            and self.options.use_task
            and self.options.use_criteria
        )
        return self.with_(use_task=False, use_criteria=False) if both else None

    def choices(self, *, variants: Sequence[str] = ()) -> CriticChoices[Self]:
        """Return the choices that a search may make; see `capabilities.HasChoices`."""
        return CriticChoices(self, self._own, variants)

    def refiners(self) -> list[Refiner]:
        """Return the fit of the criteria's weights, for a fine judge without any."""
        if self.options.variant == "fine" and self.combination is None:
            return [self._weigh_criteria]
        return []

    def _weigh_criteria(self, rows: TrainingRows) -> Refinement:
        """Weights for the criteria, in OS-E's place or beside it."""
        names = list(dict.fromkeys(c.name for c in self.knowledge.criteria))
        scores = score_matrix(
            [v.criteria for v in rows.verdicts],
            names,
            lambda criterion: criterion.score,
        )
        overall = self.options.combine == "os-e"
        plain = "OS-E" if overall else "the mean of the criteria"
        fit = rows.ridge_weights(scores, own=overall, parts="criteria", plain=plain)
        weights = dict(zip(names, fit.weights, strict=False))
        details = fit.to_dict() | {"weights": weights or None}
        if fit.reason is not None:
            return Refinement("combination", rows.percents, details, fit.reason)
        combination = Combination(criteria=weights, overall=fit.own)
        self.combination = self._checked(combination)
        percents = [
            combination(v.criteria, math.nan if v.failure else v.percent)
            for v in rows.verdicts
        ]
        changed = (
            f"scores are combined by weights of the criteria{' beside OS-E' if fit.own else ''}: {rows.label} "
            f"{fit.found:.2f} against {fit.plain:.2f} on training rows that the weights were not fitted to"
        )
        return Refinement(
            "combination", np.array(percents, dtype=float), details, changed=changed
        )

    def fitted(self) -> dict[str, Any]:
        """Return the combination of its scores; see `capabilities.Learns`."""
        if self.combination is None:
            return {}
        self._checked(self.combination)  # its criteria may have been changed since
        weights = {
            name: round(float(w), 6) for name, w in self.combination.criteria.items()
        }
        return {
            "combination": {
                "overall": round(float(self.combination.overall), 6),
                "criteria": weights,
            }
        }

    def load_fitted(self, name: str, data: Any) -> None:
        """Take the data that `fitted` gave.

        Raises:
            OptionError: For data that does not fit.
        """
        self.combination = self._checked(Combination(**data))

    def _checked(self, combination: Combination) -> Combination:
        """Return fitted weights that it can combine its scores by.

        Raises:
            OptionError: For weights of criteria that this judge has not, or of scores that its variant does not give.
        """
        unknown = set(combination.criteria) - {c.name for c in self.knowledge.criteria}
        if unknown:
            raise OptionError(
                f"there is a weight for {sorted(unknown)[0]!r}, which is not one of the criteria"
            )
        overall = self.options.combine == "os-e" or not combination.overall
        if self.options.variant != "fine" or not overall:
            raise OptionError(
                "weights need the fine variant, and a share of the overall score combine='os-e'"
            )
        return combination

    def facts(self) -> dict[str, str]:
        """Return the fitted weights, for `judgesmith show`."""
        if self.combination is None:
            return {}
        weights = ", ".join(
            f"{name} {weight:.2f}"
            for name, weight in self.combination.criteria.items()
            if weight
        )
        return {
            "weights": f"{weights}; share of the overall score {self.combination.overall:.2f}"
        }

    def set_brief(self, on: bool) -> None:
        """Leave explanations out that come after the score, or ask for them again."""
        for predictor in self._steps():
            layout: OverallLayout | CriteriaLayout = predictor.layout
            if layout.explain == "after" and layout.brief != on:
                predictor.layout = type(layout)(
                    layout.explain, layout.reading, brief=on
                )

    def stops_early(self) -> bool:
        """Return whether brief answers leave out what a demonstration would show."""
        return "after" in self._explains()

    def _steps(self) -> list[JudgePredict]:
        """The predictors of its steps, in their order."""
        return [p for p in self.predictors() if isinstance(p, JudgePredict)]

    def _asks_overall(self) -> bool:
        """Return True if the fine variant takes its second step: for the score, or at least for the explanation."""
        unused = self.combination is not None and not self.combination.overall
        return self.options.combine == "os-e" and not (
            unused and self.options.explain == "none"
        )

    def cost(self) -> Cost:
        """Return two calls a row for the fine variant with an overall score, otherwise one."""
        return Cost(2 if self.options.variant == "fine" and self._asks_overall() else 1)

    def meet(self, aspect: str, items: Sequence[Item], lm: LanguageModel) -> None:
        """Take the labels' aspect, unless the user gave one."""
        self.choose(aspect=self.options.aspect or aspect)

    async def prepare(self, lm: LanguageModel) -> None:
        """Settle variant, reading and explanation for the model.

        Raises:
            OptionError: For the fine variant without criteria.
        """
        options = self.options
        if options.variant == "fine" and not self.knowledge.criteria:
            raise OptionError(
                "the fine variant needs criteria: compile it from labels, or give them with criteria=…"
            )
        able = await lm.capabilities()
        if "auto" in (options.variant, options.reading, options.explain):
            reading = options.reading
            if reading == "auto":
                reading = "expected" if able.logprobs else "said"
            self.settle(explain=self._explains()[0], reading=reading)

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        """Score by criteria, overall, or both, and combine the scores."""
        context = TaskContext.of(self.knowledge, self.options)
        scores: Mapping[str, CriterionScore] = {}
        failed: CallError | None = None
        if self.options.variant != "fine":
            answers = [await self.overall_scorer.ascore(item, context, lm)]
        else:
            answers = [await self.criteria_scorer.ascore(item, context, lm)]
            scores = answers[0].read.values["criteria_scores"]
            if self._asks_overall():
                shown = self._shown(scores)
                try:
                    overall = await self.overall_scorer.ascore(item, context, lm, shown)
                    answers.append(overall)
                except CallError as error:
                    # The first step was paid for, and its scores are there.
                    failed = error
        values = answers[-1].read.values
        percent, failure = self._combined(scores, values, failed)
        notes = list(chain.from_iterable(answer.read.notes for answer in answers))
        if failed is not None and failure is None:
            notes.append(
                f"there is no explanation, since the second step failed: {failed}"
            )
        able = await lm.capabilities()
        if self.options.reading == "expected" and not able.logprobs:
            notes.append(
                "this model gives no log-probabilities; the judge was compiled with them"
            )
        usage, raw = spent([*answers, failed])
        return Verdict(
            percent=percent,
            explanation=values.get("explanation", ""),
            criteria=scores,
            failure=failure,
            repaired=any(answer.read.repaired for answer in answers),
            notes=tuple(notes),
            usage=usage,
            raw=raw,
        )

    def _shown(
        self, scores: Mapping[str, CriterionScore]
    ) -> Mapping[str, CriterionScore]:
        """Return the criterion scores as the second step is shown them.

        An explanation after the scores changes nothing, and a search leaves it out.
        """
        if self.options.explain != "after":
            return scores
        return {name: replace(score, explanation="") for name, score in scores.items()}

    def _combined(
        self,
        scores: Mapping[str, CriterionScore],
        values: Mapping[str, Any],
        failed: CallError | None,
    ) -> tuple[float, str | None]:
        """Return the percent, and why there is none.

        Args:
            scores: The criterion scores.
            values: What the last answer says.
            failed: The failure of the second step.
        """
        combination = self.combination
        if failed is not None and (combination is None or combination.overall):
            return math.nan, str(failed)
        if combination is None:
            return values["score"] if "score" in values else mean_score(scores), None
        percent = combination(scores, values.get("score", math.nan))
        unscored = math.isnan(percent)
        return (
            percent,
            "no criterion that has a weight was scored" if unscored else None,
        )

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        """Return the messages of each step for a row."""
        context = TaskContext.of(self.knowledge, self.options)
        if self.options.variant != "fine":
            inputs = self.overall_scorer.inputs(item, context)
            return {"overall_scorer": self.overall_scorer.predict.messages(inputs)}
        inputs = self.criteria_scorer.inputs(item, context)
        messages = {"criteria_scorer": self.criteria_scorer.predict.messages(inputs)}
        if self._asks_overall():
            inputs = self.overall_scorer.inputs(item, context, {})
            messages[
                "overall_scorer (the criterion scores of the first step follow)"
            ] = self.overall_scorer.predict.messages(inputs)
        return messages
