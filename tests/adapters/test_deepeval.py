"""A saved judge in DeepEval itself."""

from pathlib import Path
from typing import Any

import pytest

import judgesmith as js
from judgesmith.errors import NoScoreError, OptionError

deepeval = pytest.importorskip("deepeval")


@pytest.fixture(autouse=True)
def its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DeepEval leaves a folder where it runs."""
    monkeypatch.chdir(tmp_path)


def case(output: str) -> Any:
    from deepeval.test_case import LLMTestCase

    return LLMTestCase(
        input="a question", actual_output=output, expected_output="a reference", retrieval_context=["one", "two"]
    )


def evaluated(outputs: list[str], metric: Any, *, ignore_errors: bool = False) -> list[Any]:
    """(success, score, error) of each row."""
    from deepeval.evaluate.configs import AsyncConfig, DisplayConfig, ErrorConfig

    results = deepeval.evaluate(
        [case(output) for output in outputs],
        [metric],
        async_config=AsyncConfig(run_async=True),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        error_config=ErrorConfig(ignore_errors=ignore_errors),
    )
    in_order = sorted(results.test_results, key=lambda r: outputs.index(r.actual_output))
    return [(data.success, data.score, data.error) for result in in_order for data in result.metrics_data]


def test_scores_on_the_judges_scale(saved: dict[str, Any], server: Any) -> None:
    metric = js.deepeval_metric(**saved, threshold=50)
    assert evaluated(["good 40", "good 80"], metric) == [(False, 40.0, None), (True, 80.0, None)]
    assert metric.__name__ == "truth"
    prompt = server.judged[0].text
    for part in ("a question", "a reference", "one\n\ntwo"):
        assert part in prompt
    metric.measure(case("good 70"))
    assert (metric.score, metric.reason, metric.is_successful()) == (70.0, "It says 70.", True)


def test_a_row_without_a_score_is_an_error(saved: dict[str, Any]) -> None:
    metric = js.deepeval_metric(**saved, threshold=50)
    (good, bad) = evaluated(["good 80", "bad"], metric, ignore_errors=True)
    assert good == (True, 80.0, None)
    assert (bad[0], bad[1]) == (False, None)
    assert "answer" in bad[2]
    metric.measure(case("good 70"))
    with pytest.raises(NoScoreError):
        metric.measure(case("bad"))
    assert (metric.score, metric.is_successful()) == (None, False)
    with pytest.raises(NoScoreError):
        evaluated(["bad"], metric)


def test_what_passes_has_to_be_said(saved: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="say which scores pass"):
        js.deepeval_metric(**saved)
