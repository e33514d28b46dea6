"""COMET and BERTScore: what its packages are asked, with packages that are written here."""

import sys
from typing import Any

import pytest

from judgesmith.errors import MissingExtraError, ModelError
from judgesmith.programs.baselines.bertscore import BertScore
from judgesmith.programs.baselines.comet import Comet


def test_rows_are_asked_in_its_own_form(comet: Any) -> None:
    rows = [
        {"source": "a b", "output": "x y", "reference": "v w x y"},
        {"source": "a b", "output": "x y"},
        {"source": " ", "output": "xy", "reference": "z"},
        {"source": "s", "output": "", "references": ["ab", "c"]},
    ]
    first, second, third, fourth = Comet().score_many(rows)
    assert (first.score, first.percent, fourth.score) == (0.5, 50.0, 0.0)
    assert [second.failure, third.failure] == ["no reference to compare with", "no source to compare with"]
    assert comet.asked == [{"src": "a b", "mt": "x y", "ref": "v w x y"}, {"src": "s", "mt": "", "ref": "ab"}]
    assert comet.names == ["Unbabel/wmt22-comet-da"]


def test_a_model_without_references(comet: Any) -> None:
    assert Comet(model="Unbabel/kiwi", reference=False).score("a", source="a b").score == 0.5
    assert comet.asked == [{"src": "a b", "mt": "a"}]


def test_what_is_missing_is_named(comet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> str:
        raise KeyError(name)

    comet.download_model = refuse
    with pytest.raises(ModelError, match="metric/comet: the model a/b cannot be fetched or opened: 'a/b'"):
        Comet(model="a/b").score("x", "y", source="z")
    monkeypatch.setitem(sys.modules, "comet", None)
    with pytest.raises(MissingExtraError, match=r"metric/comet needs .* pip install unbabel-comet"):
        Comet().score("x", "y", source="z")


def test_bertscore_takes_the_best_reference(bert_score: Any) -> None:
    rows = [
        {"output": "a cat", "references": ["nobody", "a cat sat"]},
        {"output": "a cat"},
        {"output": " ", "reference": "a cat"},
    ]
    first, second, third = BertScore(layer=9).score_many(rows)
    assert first.score == pytest.approx(0.8) and first.percent == pytest.approx(80)  # P 1, R 2/3
    assert second.failure == "no reference to compare with" and third.score == 0.0
    assert BertScore(of="recall", against="source").score("a cat", source="a cat sat there").score == 0.5
    assert bert_score.options[0] == {"model_type": "roberta-large", "num_layers": 9}


def test_what_bertscore_lacks_is_named(bert_score: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="the model nobody/nothing cannot be fetched or opened: no such model"):
        BertScore(model="nobody/nothing").score("x", "y")
    monkeypatch.setitem(sys.modules, "bert_score", None)
    with pytest.raises(MissingExtraError, match=r"metric/bertscore needs .*pip install 'judgesmith\[bertscore\]'"):
        BertScore().score("x", "y")
