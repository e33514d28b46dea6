"""Every judge of this package, made in the shortest way, and with every field that a file can have."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from judgesmith.programs import artifact
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.active_critic.scoring import Combination
from judgesmith.programs.baselines.pairs import PairS
from judgesmith.programs.comparing.pairwise import PairwiseDirectScorer
from judgesmith.programs.judge import Judge
from judgesmith.programs.one_aspect import OneAspectJudge
from judgesmith.programs.openlgauge.judge import OpeNLGauge
from judgesmith.programs.outcome import Calibration
from judgesmith.programs.pointwise.geval import GEval
from judgesmith.programs.registry import judges
from judgesmith.signatures.values import Criterion, CriterionScore, Scale

Make = Callable[..., Judge]
CLARITY = Criterion("Clarity", "It is easy to follow.")
#: Judges that need other arguments than those of `default`, or that are tested in several variants.
SPECIAL: dict[str, Make] = {
    "active-critic, vanilla": lambda **given: ActiveCritic("vanilla", **given),
    "active-critic, fine": lambda **given: ActiveCritic("fine", criteria=[CLARITY], **given),
    "pairwise-direct": lambda **given: PairwiseDirectScorer("fluency", levels=2, samples=1, **given),
    "g-eval": lambda **given: GEval("fluency", samples=1, **given),
    "pairs": lambda **given: PairS("fluency", samples=1, **given),
}


def default(part: type[Judge]) -> Make:
    one: Any = part
    return partial(one, "fluency") if issubclass(part, OneAspectJudge) else partial(one, criteria=[CLARITY])


#: Every judge of this package; other packages test theirs with the same suite.
JUDGES: dict[str, Make] = {
    **{kind: default(part) for kind, part in judges.parts().items() if part.__module__.startswith("judgesmith.")},
    **SPECIAL,
}


def whole() -> Iterator[Judge]:
    """One of every kind, and with every field that a file can have, but for its model."""
    for kind in judges.parts().values():
        yield kind()
    fine = ActiveCritic("fine", criteria=[CLARITY], task="Summaries.", scale=Scale(1, 5))
    demo = {name: name for name in ("source", "output", "context", "reference", "group", "explanation")}
    scored = {"score": 50.0, "gold": True, "criteria_scores": {"Clarity": CriterionScore(50.0, "e")}}
    for predictor in artifact.predictors(fine).values():
        predictor.demos = [demo | scored]
    fine.calibration = Calibration((0.0, 50.0, 100.0), (1.0, 2.0, 5.0))
    fine.combine_by(Combination(criteria={"Clarity": 1.0}, overall=0.5))
    fine.provenance = {"seen": ["a"], "candidates": [{"candidate": "zero-shot", "q": 1.0}], "labels": {"aspect": "x"}}
    yield fine
    yield OpeNLGauge("fluency", annotators=["openai/a", "openai/b@0.7"])
    yield PairwiseDirectScorer("summarization/coherence", writer="openai/writer")
