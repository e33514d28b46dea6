"""Fitted weights of criterion scores: the arithmetic, the judge that has them, and its file."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgesmith.errors import ArtifactError, OptionError
from judgesmith.programs import artifact, loading
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.active_critic.scoring import Combination
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.transport import Unanswered
from judgesmith.signatures.values import Criterion, CriterionScore, Item

CRITERIA = (Criterion("Fluency", "It reads well."), Criterion("Truth", "It is true."))
LINES = "Fluency: Reads well. Score: 80\nTruth: One error. Score: 40"
OVERALL = "Explanation: It is dull.\nScore: 60"
ALONE = Combination(criteria={"Fluency": 0.25, "Truth": 0.75})
MIXED = Combination(criteria={"Fluency": 0.25, "Truth": 0.75}, overall=0.4)


def scores(**given: float) -> dict[str, CriterionScore]:
    return {name: CriterionScore(score) for name, score in given.items()}


def critic(
    lm: Any = None, combination: Combination | None = ALONE, **options: Any
) -> Judge:
    settled: dict[str, Any] = {
        "explain": "before",
        "reading": "said",
        "criteria": CRITERIA,
    }
    judge = Judge(ActiveCritic("fine", **settled | options), lm=lm)
    if combination is not None:
        judge.method.load_fitted("combination", combination.model_dump())
    return judge


# -- the arithmetic


def test_the_weighted_mean_by_hand() -> None:
    both = scores(Fluency=80.0, Truth=40.0)
    assert ALONE(both) == 50.0  # (0.25 * 80 + 0.75 * 40) / 1
    assert MIXED(both, 60.0) == pytest.approx(54.0)  # 0.4 * 60 + 0.6 * 50
    assert ALONE(both, 60.0) == 50.0  # OS-E has no share
    assert (
        Combination(criteria={"Fluency": 0.5, "Truth": 0.5, "Other": 0.5})(both) == 60.0
    )  # weights need not sum to 1


def test_a_missing_criterion_leaves_its_weight_to_the_others() -> None:
    assert ALONE(scores(Fluency=80.0)) == 80.0
    assert ALONE(scores(Fluency=math.nan, Truth=40.0)) == 40.0
    assert math.isnan(ALONE({}))
    assert math.isnan(
        Combination(criteria={"Fluency": 1.0, "Truth": 0.0})(scores(Truth=40.0))
    )
    assert math.isnan(
        MIXED(scores(Fluency=80.0, Truth=40.0))
    )  # OS-E's score is part of it and is not there
    assert math.isnan(MIXED({}, 60.0))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 100)), min_size=1, max_size=6),
    st.floats(0, 0.99),
)
def test_it_stays_on_the_scale_and_between_what_it_combines(
    told: list[tuple[float, float]], share: float
) -> None:
    if not any(weight for weight, _ in told):
        return
    rule = Combination(
        criteria={f"c{i}": weight for i, (weight, _) in enumerate(told)}, overall=share
    )
    found = rule(
        {f"c{i}": CriterionScore(score) for i, (_, score) in enumerate(told)},
        told[0][1],
    )
    seen = [score for _, score in told]
    assert min(seen) - 1e-9 <= found <= max(seen) + 1e-9
    assert 0 <= found <= 100


# -- the judge


@pytest.mark.parametrize(("combination", "score"), [(ALONE, 50.0), (MIXED, 54.0)])
def test_the_judge_scores_by_its_weights_and_explains_by_its_second_step(
    scripted: Any, combination: Combination, score: float
) -> None:
    lm, _ = scripted([(lambda _: True, LINES), (lambda _: True, OVERALL)])
    judge = critic(lm, combination)
    assert judge.method.cost().calls_per_row == 2
    verdict = judge.score("s", "o")
    assert (verdict.score, verdict.explanation, verdict.failure) == (
        pytest.approx(score),
        "It is dull.",
        None,
    )


def test_a_second_step_that_gives_neither_score_nor_explanation_is_not_asked_for(
    scripted: Any,
) -> None:
    lines = "Fluency: Score: 80\nTruth: Score: 40"
    lm, transport = scripted([(lambda _: True, lines)])
    judge = critic(lm, explain="none")
    assert judge.method.cost().calls_per_row == 1
    assert list(judge.previews(Item("o"))) == ["criteria_scorer"]
    assert judge.score("s", "o").score == 50.0
    assert len(transport.requests) == 1
    assert critic(None, MIXED, explain="none").method.cost().calls_per_row == 2
    assert critic(None, combine="mean").method.cost().calls_per_row == 1


def test_a_failed_second_step_fails_the_row_only_where_its_score_counts(
    scripted: Any,
) -> None:
    script = [
        (lambda _: True, LINES),
        (lambda _: True, Unanswered("HTTP 400: no", again=False)),
    ]
    lm, _ = scripted(list(script))
    kept = critic(lm).score("s", "o")
    assert (kept.score, kept.explanation, kept.failure) == (50.0, "", None)
    assert len(kept.notes) == 1
    assert "there is no explanation, since the second step failed" in kept.notes[0]
    lm, _ = scripted(list(script))
    lost = critic(lm, MIXED).score("s", "o")
    assert math.isnan(lost.score)
    assert lost.failure is not None
    assert "HTTP 400" in lost.failure
    assert lost.criteria["Truth"].score == 40.0


def test_a_row_without_any_score_that_counts_fails_with_a_reason(scripted: Any) -> None:
    lm, _ = scripted(
        [(lambda _: True, "Truth: One error. Score: 40"), (lambda _: True, OVERALL)]
    )
    verdict = critic(lm, Combination(criteria={"Fluency": 1.0, "Truth": 0.0})).score(
        "s", "o"
    )
    assert math.isnan(verdict.score)
    assert verdict.failure == "no criterion that has a weight was scored"


def test_weights_that_do_not_fit_the_judge_are_refused() -> None:
    with pytest.raises(OptionError, match="'Wit', which is not one of the criteria"):
        critic(None, Combination(criteria={"Wit": 1.0}))
    with pytest.raises(OptionError, match="fine variant"):
        critic(None, MIXED, combine="mean")
    with pytest.raises(OptionError, match="fine variant"):
        ActiveCritic("coarse", criteria=CRITERIA).load_fitted(
            "combination", ALONE.model_dump()
        )


def test_another_form_of_answers_forgets_the_weights() -> None:
    judge = critic()
    assert judge.with_().method.combination == ALONE
    judge.method.settle(explain="after", reading="said")
    assert judge.method.combination is None


# -- the file


def test_the_fingerprint_tells_weights_apart() -> None:
    assert (
        len({artifact.fingerprint(critic(None, c)) for c in (None, ALONE, MIXED)}) == 3
    )


@pytest.mark.parametrize(
    "forged",
    [
        {"criteria": {}},
        {"criteria": {"Fluency": 0.0}},
        {"criteria": {"Fluency": -0.5, "Truth": 1.0}},
        {"criteria": {"Fluency": True}},
        {"criteria": {"Wit": 1.0}},
        {"criteria": {"": 1.0}},
        {"criteria": {f"c{i}": 1.0 for i in range(65)}},
        {"criteria": {"Fluency": 1.0}, "overall": 1.0},
        {"criteria": {"Fluency": 1.0}, "intercept": 3.0},
        {"overall": 0.5},
    ],
)
def test_forged_weights_are_refused(forged: Any, tmp_path: Path) -> None:
    path = tmp_path / "judge.json"
    critic(None, ALONE).save(path)
    loading.load(path)  # the forgeries start from a file that loads
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"combination": forged}))
    with pytest.raises(ArtifactError):
        loading.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"options": {"variant": "coarse"}},
        {"options": {"combine": "mean"}},
        {"kind": "openlgauge"},
    ],
)
def test_weights_in_a_file_of_another_judge_are_refused(
    change: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "judge.json"
    critic(None, MIXED).save(path)
    data = json.loads(path.read_text())
    data["program"]["options"] |= change.get("options", {})
    data["program"]["kind"] = change.get("kind", data["program"]["kind"])
    path.write_text(json.dumps(data))
    with pytest.raises(
        ArtifactError, match=r"weights need the fine variant|takes no combination"
    ):
        loading.load(path)


def test_weights_of_criteria_that_are_gone_cannot_be_saved(tmp_path: Path) -> None:
    judge = critic()
    judge.method.knowledge.criteria = CRITERIA[:1]
    with pytest.raises(ArtifactError, match="a weight for 'Truth'"):
        judge.save(tmp_path / "judge.json")
