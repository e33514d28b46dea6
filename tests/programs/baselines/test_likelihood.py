"""GPTScore: by a reader that is written here, and by a served model."""

import math
from typing import Any

import pytest
from reading_stand_ins import Copyist, echoing

from judgesmith.errors import OptionError
from judgesmith.programs.baselines.likelihood import GptScore
from judgesmith.programs.baselines.metrics import reference_metric
from judgesmith.programs.readings.reader import Ability

SOURCE = "the council repairs the bridge"


def test_percent_is_the_mean_probability(copyist: Copyist) -> None:
    verdict = next(GptScore().score_many([{"source": SOURCE, "output": SOURCE}]))
    assert verdict.score == -1
    assert verdict.percent == pytest.approx(100 * math.exp(-1))


def test_a_long_source_is_read_in_part_which_is_said(copyist: Copyist) -> None:
    copyist.ability = Ability(context=120)
    verdict = GptScore().score("the council", source=f"{SOURCE} {'word ' * 900}")
    assert verdict.score == -1
    assert 0 < verdict.partly["source"] < 0.2
    assert verdict.notes == (f"{verdict.partly['source']:.1%} of the source was read",)


def test_gptscore_asks_for_the_aspect(copyist: Copyist) -> None:
    GptScore(aspect="summarization/coherence").score("the council", source=SOURCE)
    (asked,) = copyist.asked
    assert "Summarize the article." in asked
    assert "excellent in coherence:" in asked
    assert SOURCE in asked
    GptScore(instruction="Say it shorter.", against="reference").score(
        "the council", SOURCE
    )
    assert "Say it shorter." in copyist.asked[1]
    with pytest.raises(OptionError, match="no aspect 'beauty'"):
        GptScore(aspect="summarization/beauty").score("x", source="y")


def test_the_best_reference_counts_and_an_empty_output_has_no_likelihood(
    copyist: Copyist,
) -> None:
    best = GptScore(against="reference").score("the council", ["nobody", "the council"])
    assert best.score == -1
    (empty, nothing) = GptScore().score_many(
        [{"source": SOURCE, "output": " "}, {"output": "x"}]
    )
    assert empty.failure == "an empty output has no likelihood"
    assert nothing.failure == "no source to compare with"
    assert math.isnan(nothing.score)


def test_without_a_model_it_says_how_to_name_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("JUDGESMITH_LM", raising=False)
    with pytest.raises(
        OptionError,
        match=r"write metric/gptscore:local/qwen2.5-0.5b, or set JUDGESMITH_LM",
    ):
        reference_metric("gptscore").score("x", source="y")


def test_a_served_model_reads_by_its_prompt_log_probabilities(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(echoing)
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", server.base)
    verdict = GptScore(model="hosted_vllm/some-model").score(
        "four times", source="Two and two"
    )
    assert verdict.score == pytest.approx((-0.4 - 0.5) / 2)  # 4 and 5 letters
