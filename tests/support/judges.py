"""Every judge of this package, made in the shortest way, and with every field that a file can have."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from judgesmith.programs import artifact
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.active_critic.scoring import Combination
from judgesmith.programs.baselines.pairs import PairS
from judgesmith.programs.comparing.pairwise import PairwiseDirectScorer
from judgesmith.programs.judge import Judge
from judgesmith.programs.method import Method
from judgesmith.programs.one_aspect import OneAspect
from judgesmith.programs.openlgauge.judge import OpeNLGauge
from judgesmith.programs.outcome import Calibration
from judgesmith.programs.pointwise.geval import GEval
from judgesmith.programs.registry import methods
from judgesmith.signatures.values import Criterion, CriterionScore, Scale

Make = Callable[..., Judge]
CLARITY = Criterion("Clarity", "It is easy to follow.")
#: Judges that need other arguments than those of `default`, or that are tested in several variants.
SPECIAL: dict[str, Make] = {
    "active-critic, vanilla": lambda **given: Judge(ActiveCritic("vanilla"), **given),
    "active-critic, fine": lambda **given: Judge(
        ActiveCritic("fine", criteria=[CLARITY]), **given
    ),
    "pairwise-direct": lambda **given: Judge(
        PairwiseDirectScorer("fluency", levels=2, samples=1), **given
    ),
    "g-eval": lambda **given: Judge(GEval("fluency", samples=1), **given),
    "pairs": lambda **given: Judge(PairS("fluency", samples=1), **given),
}


def default(part: type[Method]) -> Make:
    """Make a judge of an aspect or of criteria alone; a method that needs more has its entry in SPECIAL."""
    one: Any = part

    def made(**given: Any) -> Judge:
        try:
            if issubclass(part, OneAspect):
                return Judge(one("fluency"), **given)
            return Judge(one(criteria=[CLARITY]), **given)
        except TypeError as error:
            raise AssertionError(
                f"method {part.kind!r} cannot be made of an aspect or criteria alone ({error}); give it an entry in "
                "SPECIAL of tests/support/judges.py, so that the contract is tested"
            ) from error

    return made


#: Every judge of this package; other packages test theirs with the same suite.
JUDGES: dict[str, Make] = {
    **{
        kind: default(part)
        for kind, part in methods.parts().items()
        if part.__module__.startswith("judgesmith.")
    },
    **SPECIAL,
}
#: Those with a prompt, which an optimizer can change: others ask typed questions.
PROMPTED = sorted(kind for kind, make in JUDGES.items() if make().predictors())


def whole() -> Iterator[Judge]:
    """One of every kind, and with every field that a file can have, but for its model."""
    for kind in methods.parts().values():
        yield Judge(kind())
    fine = Judge(
        ActiveCritic("fine", criteria=[CLARITY], task="Summaries."), scale=Scale(1, 5)
    )
    demo = {
        name: name
        for name in ("source", "output", "context", "reference", "group", "explanation")
    }
    scored = {
        "score": 50.0,
        "gold": True,
        "criteria_scores": {"Clarity": CriterionScore(50.0, "e")},
    }
    for predictor in artifact.predictors(fine.method).values():
        predictor.demos = [demo | scored]
    fine.outcome = replace(
        fine.outcome, calibration=Calibration((0.0, 50.0, 100.0), (1.0, 2.0, 5.0))
    )
    weights = Combination(criteria={"Clarity": 1.0}, overall=0.5)
    fine.method.load_fitted("combination", weights.model_dump())
    fine.provenance = {
        "seen": ["a"],
        "candidates": [{"candidate": "zero-shot", "q": 1.0}],
        "labels": {"aspect": "x"},
    }
    yield fine
    yield Judge(OpeNLGauge("fluency", annotators=["openai/a", "openai/b@0.7"]))
    yield Judge(PairwiseDirectScorer("summarization/coherence", writer="openai/writer"))
