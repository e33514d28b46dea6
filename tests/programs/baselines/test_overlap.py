"""Metrics against references, as judges: values by hand, missing references, a missing package or model."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from judgesmith.errors import MissingExtraError, OptionError
from judgesmith.programs.baselines.metrics import Metric, reference_metric
from judgesmith.programs.registry import metrics

METRICS = [
    name
    for name, part in metrics.parts().items()
    if part.__module__.endswith(".overlap")
]
PACKAGES = ("rouge_score", "sacrebleu")


@pytest.fixture(params=METRICS)
def metric(request: pytest.FixtureRequest) -> Metric:
    pytest.importorskip(PACKAGES[not request.param.startswith("rouge")])
    return reference_metric(request.param)


def test_rouge_by_hand() -> None:
    pytest.importorskip("rouge_score")
    # 3 of 4 words of the output are in the reference, 3 of its 6: F = 2 * .75 * .5 / 1.25 = .6
    output, reference = "the cat sat quietly", "the cat sat on the mat"
    assert reference_metric("metric/rouge1").score(
        output, reference
    ).score == pytest.approx(0.6)
    # 2 of 3 and 2 of 5 pairs of words: F = 2 * 2/3 * 2/5 / (2/3 + 2/5) = .5
    assert reference_metric("rouge2").score(output, reference).score == pytest.approx(
        0.5
    )
    assert reference_metric("rougel").score(output, reference).score == pytest.approx(
        0.6
    )


def test_a_row_without_a_reference_has_no_score(metric: Metric) -> None:
    rows: list[Any] = [
        {"output": "one two three", "reference": "one two three"},
        {"output": "one two three"},
        SimpleNamespace(output="one two three", reference="  "),
        {"output": "", "reference": "one two three"},
        {
            "output": "one two three",
            "references": ["wholly different words", "one two three"],
            "reference": "z",
        },
    ]
    verdicts = list(metric.score_many(rows))
    assert len(verdicts) == len(rows)
    assert verdicts[0].percent == pytest.approx(100.0)
    assert [v.failure for v in verdicts[1:3]] == ["no reference to compare with"] * 2
    assert all(math.isnan(v.score) for v in verdicts[1:3])
    assert verdicts[3].score == 0  # an empty output is a bad text, not a failure
    assert [verdicts[0].score, verdicts[4].score] == [
        pytest.approx(1.0)
    ] * 2  # of its own or its best reference


def test_an_unknown_metric_names_the_known_ones() -> None:
    with pytest.raises(
        OptionError,
        match=r"no metric metric/nist; there are .*metric/rouge1, .*metric/chrf",
    ):
        reference_metric("metric/nist")


def test_options_stand_after_a_colon() -> None:
    metric = reference_metric("metric/bertscore:some/model,layer=9,of=recall")
    assert metric.chosen.settings() == {
        "model": "some/model",
        "of": "recall",
        "layer": 9,
        "against": "reference",
    }
    assert reference_metric("bertscore:of=recall").chosen.settings()["of"] == "recall"
    assert (
        reference_metric("bertscore:some/model").chosen.settings()["model"]
        == "some/model"
    )
    with pytest.raises(OptionError, match="has no option 'weight'"):
        reference_metric("bertscore:some/model,weight=1")


@pytest.mark.parametrize("name", METRICS)
def test_a_missing_package_names_its_command(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in {*PACKAGES, *sys.modules}:
        if module.split(".")[0] in PACKAGES:
            monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'judgesmith\[metrics\]'"):
        list(reference_metric(name).score_many([{"output": "x", "reference": "x"}]))
