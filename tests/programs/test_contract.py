"""What holds for every judge, whatever its method."""

from collections.abc import Callable

import pytest

from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.comparing.pairs import PairS
from judgesmith.programs.comparing.pairwise import PairwiseDirectScorer
from judgesmith.programs.distilled.judge import DistilledJudge
from judgesmith.programs.ensemble import Committee, Norm
from judgesmith.programs.judge import Judge
from judgesmith.programs.openlgauge.judge import OpeNLGauge
from judgesmith.programs.pointwise.critique import AutoJ, ExplainEval, Themis
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.pointwise.geval import GEval
from judgesmith.programs.pointwise.tigerscore import TigerScore
from judgesmith.programs.readings.judge import ReadingsJudge
from judgesmith.programs.registry import ensembles, judges
from judgesmith.programs.several_aspects import AspectsJudge
from judgesmith.signatures.values import Criterion
from judgesmith.testing import JudgeContract

Make = Callable[..., Judge]
CLARITY = Criterion("Clarity", "It is easy to follow.")
JUDGES: dict[str, Make] = {
    "active-critic, vanilla": lambda **given: ActiveCritic("vanilla", **given),
    "active-critic, coarse": lambda **given: ActiveCritic("coarse", criteria=[CLARITY], **given),
    "active-critic, fine": lambda **given: ActiveCritic("fine", criteria=[CLARITY], **given),
    "openlgauge": lambda **given: OpeNLGauge("fluency", **given),
    "pairwise-direct": lambda **given: PairwiseDirectScorer("fluency", levels=2, samples=1, **given),
    "g-eval": lambda **given: GEval("fluency", samples=1, **given),
    "direct": lambda **given: DirectScorer("fluency", **given),
    "explain-eval": lambda **given: ExplainEval("fluency", **given),
    "themis": lambda **given: Themis("fluency", **given),
    "auto-j": lambda **given: AutoJ("fluency", **given),
    "tigerscore": lambda **given: TigerScore("fluency", **given),
    "readings": lambda **given: ReadingsJudge("fluency", **given),
    "distilled": lambda **given: DistilledJudge("fluency", **given),
    "pairs": lambda **given: PairS("fluency", samples=1, **given),
    "committee": lambda **given: Committee([DirectScorer("fluency")] * 2, [Norm(40, 10), Norm(60, 20)], **given),
    "aspects": lambda lm=None, **given: AspectsJudge(
        {"fluency": DirectScorer("fluency", **given), "clarity": ActiveCritic("coarse", criteria=[CLARITY], **given)},
        lm=lm,
    ),
}


def test_every_kind_is_here() -> None:
    assert {make().kind for make in JUDGES.values()} == {*judges.names(), *ensembles.names()}


class TestEveryJudge(JudgeContract):
    @pytest.fixture(params=JUDGES)
    def make(self, request: pytest.FixtureRequest) -> Make:
        """make(lm=…, scale=…): a new judge of one kind."""
        made: Make = JUDGES[request.param]
        return made
