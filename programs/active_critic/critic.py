"""Active-Critic: a judge that learnt from labelled examples what is judged and by which criteria, then scores.

Variants: *vanilla* (an overall score from demonstrations only), *coarse* (task and criteria in the prompt, one call),
*fine* (McS-E on every criterion, then OS-E). Paper: "Large Language Models Are Active Critics in NLG Evaluation".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

from ...errors import CallError, OptionError
from ...signatures.values import Criterion, CriterionScore, Item, Scale, Usage, Verdict
from ..judge import Judge
from ..models.lm import LanguageModel
from ..models.transport import Message
from ..prompting.layouts import Explain, OverallLayout, Reading
from .combination import Combination
from .scoring import Known, MultiCriteriaScorer, OverallScorer, mean_score

Variant = Literal["vanilla", "coarse", "fine"]


class ActiveCritic(Judge):
    """The compiled judge of Active-Critic.

    variant: vanilla, coarse or fine. explain: the explanation comes "before" the score (the paper's), "after" it, or
    not at all ("none", the paper's ablation); "auto" lets compiling choose between before and after by agreement.
    reading: the number "said" (0–100), or the "expected" digit under the model's probabilities; "auto" lets compiling
    choose, and without compiling takes "expected" where the model gives log-probabilities.
    aspect: what is scored, in the field's word ("fluency"); "" is overall quality.
    task, criteria: the user's own text in place of inferred ones. Ablations: use_task=False leaves the description
    out, use_criteria=False the criteria; combine="mean" replaces OS-E by the mean of the criterion scores.
    combination: how compiling found the fine variant's scores are best combined, where that is neither of the two.
    """

    kind: ClassVar[str] = "active-critic"

    def __init__(
        self,
        variant: Variant = "coarse",
        *,
        explain: Explain | Literal["auto"] = "auto",
        reading: Reading | Literal["auto"] = "auto",
        task: str = "",
        criteria: Sequence[Criterion] = (),
        use_task: bool = True,
        use_criteria: bool = True,
        combine: Literal["os-e", "mean"] = "os-e",
        aspect: str = "",
        lm: str | LanguageModel | Any | None = None,
        scale: Scale | None = None,
    ) -> None:
        super().__init__(task=task, criteria=criteria, lm=lm, scale=scale)
        for name, value, allowed in (
            ("variant", variant, get_args(Variant)),
            ("explain", explain, (*get_args(Explain), "auto")),
            ("reading", reading, (*get_args(Reading), "auto")),
            ("combine", combine, ("os-e", "mean")),
        ):
            if value not in allowed:
                raise OptionError(f"{name} {value!r} is none of {', '.join(allowed)}")
        if variant == "fine" and not use_criteria:
            raise OptionError("the fine variant scores criteria; use_criteria=False goes with coarse or vanilla")
        if combine == "mean" and variant != "fine":
            raise OptionError("combine='mean' averages criterion scores, which only the fine variant has")
        self.variant: Variant = variant
        self.explain = explain
        self.reading = reading
        self.use_task = use_task
        self.use_criteria = use_criteria
        self.combine = combine
        self.aspect = aspect
        self.combination: Combination | None = None
        self._build()

    def _build(self) -> None:
        explain: Explain = "before" if self.explain == "auto" else self.explain
        reading: Reading = "said" if self.reading == "auto" else self.reading
        if self.variant == "fine":
            self.criteria_scorer = MultiCriteriaScorer(explain, reading)
        if self.variant != "fine" or self.combine == "os-e":
            self.overall_scorer = OverallScorer(explain, reading)

    def settle(self, *, explain: Explain, reading: Reading) -> None:
        """Fix the form of answers. Demonstrations and instructions stay: they are kept as fields, not as texts. Fitted
        weights go: they were fitted to answers of another form."""
        self.explain, self.reading, self.combination = explain, reading, None
        before = {name: (p.demos, p.signature) for name, p in self.named_predictors()}
        self._build()
        for name, predictor in self.named_predictors():
            predictor.demos, predictor.signature = before[name]

    def as_variant(self, variant: Variant) -> ActiveCritic:
        """The same judge, as another variant without demonstrations; what only the fine one has goes."""
        made = self.copy_for(variant=variant, combination=None, combine=self.combine if variant == "fine" else "os-e")
        for name in ("criteria_scorer", "overall_scorer"):
            made.__dict__.pop(name, None)
        made._build()
        return made

    @property
    def brief(self) -> bool:
        """Whether scoring stops after the overall score (same score, no explanation): for searches."""
        layout = self._overall_layout()
        return layout is not None and layout.brief

    def set_brief(self, on: bool) -> None:
        layout = self._overall_layout()
        if layout is not None and layout.explain == "after" and layout.brief != on:
            self.overall_scorer.predict.layout = OverallLayout(layout.explain, layout.reading, brief=on)

    def _overall_layout(self) -> OverallLayout | None:
        if not hasattr(self, "overall_scorer"):
            return None
        layout: OverallLayout = self.overall_scorer.predict.layout
        return layout

    def options(self) -> dict[str, Any]:
        return {
            "variant": self.variant,
            "explain": self.explain,
            "reading": self.reading,
            "use_task": self.use_task,
            "use_criteria": self.use_criteria,
            "combine": self.combine,
            "aspect": self.aspect,
        }

    def combine_by(self, combination: Combination | None) -> None:
        """Combine the scores by fitted weights from now on; None: as `combine` says. Raises OptionError for weights of
        criteria that this judge has not, or of scores that its variant does not give."""
        if combination is not None:
            unknown = set(combination.criteria) - {c.name for c in self.knowledge.criteria}
            if unknown:
                raise OptionError(f"there is a weight for {sorted(unknown)[0]!r}, which is none of the criteria")
            if self.variant != "fine" or (combination.overall and self.combine != "os-e"):
                raise OptionError("weights need the fine variant, and a share of the overall score combine='os-e'")
        self.combination = combination

    def _asks_overall(self) -> bool:
        """Whether the fine variant takes its second step: for the score, or at least for the explanation."""
        unused = self.combination is not None and not self.combination.overall
        return self.combine == "os-e" and not (unused and self.explain == "none")

    def calls_per_row(self) -> int:
        return 2 if self.variant == "fine" and self._asks_overall() else 1

    def meet(self, aspect: str, outputs: Sequence[str]) -> None:
        self.aspect = self.aspect or aspect

    async def prepare(self, lm: LanguageModel) -> None:
        if self.variant == "fine" and not self.knowledge.criteria:
            raise OptionError("the fine variant needs criteria: compile it from labels, or give them with criteria=…")
        able = await lm.capabilities()
        if self.reading == "auto" or self.explain == "auto":
            self.settle(
                explain="before" if self.explain == "auto" else self.explain,
                reading=("expected" if able.logprobs else "said") if self.reading == "auto" else self.reading,
            )

    def known(self) -> Known:
        """What the prompts say of the task, by variant and ablation."""
        plain = self.variant == "vanilla"
        return Known(
            self.knowledge.description if self.use_task and not plain else "",
            self.knowledge.criteria if self.use_criteria and not plain else (),
            self.aspect,
        )

    async def ajudge(self, item: Item, lm: LanguageModel) -> Verdict:
        known = self.known()
        scores: Mapping[str, CriterionScore] = {}
        failed: CallError | None = None
        if self.variant != "fine":
            steps = [await self.overall_scorer.ascore(item, known, lm)]
        else:
            steps = [await self.criteria_scorer.ascore(item, known, lm)]
            scores = steps[0].read.values["criteria_scores"]
            if self._asks_overall():
                try:
                    steps.append(await self.overall_scorer.ascore(item, known, lm, scores))
                except CallError as error:  # the first step was paid for, and its scores are known
                    failed = error
        values = steps[-1].read.values
        percent = values["score"] if "score" in values else mean_score(scores)
        failure = None
        if self.combination is not None:
            percent = self.combination(scores, values.get("score", math.nan))
            failure = "no criterion that has a weight was scored" if math.isnan(percent) else None
        if failed is not None and (self.combination is None or self.combination.overall):
            percent, failure = math.nan, str(failed)
        notes = [note for s in steps for note in s.read.notes]
        if failed is not None and failure is None:
            notes.append(f"there is no explanation, since the second step failed: {failed}")
        able = await lm.capabilities()
        if self.reading == "expected" and not able.logprobs:
            notes.append("this model gives no log-probabilities; the judge was compiled with them")
        return Verdict(
            score=math.nan,
            percent=percent,
            explanation=values.get("explanation", ""),
            criteria=scores,
            failure=failure,
            repaired=any(s.read.repaired for s in steps),
            notes=tuple(notes),
            usage=sum((s.usage for s in steps), getattr(failed, "usage", Usage())),
            raw=(*(text for s in steps for text in s.raw), *getattr(failed, "raw", ())),
        )

    def previews(self, item: Item) -> dict[str, list[Message]]:
        known = self.known()
        if self.variant != "fine":
            inputs = self.overall_scorer.inputs(item, known)
            return {"overall_scorer": self.overall_scorer.predict.messages(inputs, group=item.group)}
        inputs = self.criteria_scorer.inputs(item, known)
        made = {"criteria_scorer": self.criteria_scorer.predict.messages(inputs, group=item.group)}
        if self._asks_overall():
            inputs = self.overall_scorer.inputs(item, known, {})
            made["overall_scorer (the criterion scores of the first step follow)"] = (
                self.overall_scorer.predict.messages(inputs, group=item.group)
            )
        return made
