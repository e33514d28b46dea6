"""Which of two outputs people would prefer: the chances, and a judge that is asked."""

import asyncio
import math
from pathlib import Path

import pytest

import judgesmith as js
from judgesmith.errors import ArtifactError, OptionError
from judgesmith.programs.outcome import BradleyTerry
from judgesmith.testing.scripted import MakeScripted


def test_chances_as_defined() -> None:
    model = BradleyTerry(width=10, tie=1)
    # lead 0: e^0 : 1 : e^0
    assert model.chances(40, 40) == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    # lead of 20, two widths: e : 1 : 1/e
    whole = math.e + 1 + 1 / math.e
    assert model.chances(60, 40) == pytest.approx((math.e / whole, 1 / whole, 1 / math.e / whole))
    # without ties a lead of ln 3 widths is right in three of four
    assert BradleyTerry(10).chances(10 * math.log(3), 0) == pytest.approx((0.75, 0, 0.25))
    assert BradleyTerry(1e-9).chances(100, 0)[0] == 1.0
    assert all(map(math.isnan, model.chances(math.nan, 40)))
    for wrong in ({"width": 0.0}, {"width": math.inf}, {"width": 1.0, "tie": -1.0}):
        with pytest.raises(ArtifactError, match="width above 0"):
            BradleyTerry(**wrong)


def test_a_judge_is_asked_which_of_two(scripted: MakeScripted, tmp_path: Path) -> None:
    lm, _ = scripted(lambda request: "Score: 80" if "A better one." in request.messages[-1]["content"] else "Score: 60")
    judge = js.ActiveCritic("vanilla", explain="none", reading="said", lm=lm)
    with pytest.raises(OptionError, match="not compiled from preferences"):
        judge.prefer("s", a="A better one.", b="Another.")
    judge.preference = BradleyTerry(20 / math.log(3))
    judge.save(tmp_path / "judge.json")
    judge = js.load(tmp_path / "judge.json", lm=lm)
    found = judge.prefer("s", a="A better one.", b="Another.")
    assert (found.a, found.tie, found.b) == pytest.approx((0.75, 0, 0.25))
    assert found.winner == "a" and [v.percent for v in found.verdicts] == [80, 60]
    turned = asyncio.run(judge.aprefer("s", a="Another.", b="A better one."))
    assert turned.winner == "b" and turned.b == pytest.approx(0.75)
    empty = judge.prefer("s", a="", b="Another.")
    assert empty.winner is None and math.isnan(empty.a) and empty.verdicts[0].failure
