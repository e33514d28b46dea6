"""Every judge of this package, made in the shortest way."""

from collections.abc import Callable
from functools import partial
from typing import Any

from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.baselines.pairs import PairS
from judgesmith.programs.comparing.pairwise import PairwiseDirectScorer
from judgesmith.programs.judge import Judge
from judgesmith.programs.one_aspect import OneAspectJudge
from judgesmith.programs.pointwise.geval import GEval
from judgesmith.programs.registry import judges
from judgesmith.signatures.values import Criterion

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
