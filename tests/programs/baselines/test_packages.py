"""BERTScore: what its package is asked, with a package that is written here."""

import sys
from typing import Any

import pytest

from judgesmith.errors import MissingExtraError, ModelError
from judgesmith.programs.baselines.bertscore import BertScore


def test_bertscore_takes_the_best_reference(bert_score: Any) -> None:
    rows = [
        {"output": "a cat", "references": ["nobody", "a cat sat"]},
        {"output": "a cat"},
        {"output": " ", "reference": "a cat"},
    ]
    first, second, third = BertScore(layer=9).score_many(rows)
    assert first.score == pytest.approx(0.8)
    assert first.percent == pytest.approx(80)
    assert second.failure == "no reference to compare with"
    assert third.score == 0.0
    assert (
        BertScore(of="recall", against="source")
        .score("a cat", source="a cat sat there")
        .score
        == 0.5
    )
    assert bert_score.options[0] == {"model_type": "roberta-large", "num_layers": 9}


def test_what_an_encoder_cuts_off_is_said(bert_score: Any) -> None:
    class Tokenizer:
        model_max_length = 4

        def encode(self, text: str, *, verbose: bool) -> list[str]:
            return text.split()

    bert_score.BERTScorer._tokenizer = Tokenizer()
    whole, cut = BertScore().score_many(
        [
            {"output": "a b", "reference": "a b c"},
            {"output": "a b c d " * 2} | {"reference": "a b " * 8},
        ]
    )
    assert whole.partly == {}
    assert whole.notes == ()
    assert cut.partly == {"output": 0.5, "reference": 0.25}
    assert cut.notes[0] == "50.0% of the output was read"


def test_what_bertscore_lacks_is_named(
    bert_score: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        ModelError,
        match="the model nobody/nothing cannot be fetched or opened: no such model",
    ):
        BertScore(model="nobody/nothing").score("x", "y")
    monkeypatch.setitem(sys.modules, "bert_score", None)
    with pytest.raises(
        MissingExtraError,
        match=r"metric/bertscore needs .*pip install 'judgesmith\[bertscore\]'",
    ):
        BertScore().score("x", "y")
