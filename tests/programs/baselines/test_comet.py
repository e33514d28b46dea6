"""COMET: what its package is asked, with a package that is written here."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from judgesmith.errors import MissingExtraError, ModelError
from judgesmith.programs.baselines.comet import Comet


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Any:
    """unbabel-comet in small: the score is the share of the translation's length in the reference's."""
    asked: list[dict[str, str]] = []

    def predict(rows: list[dict[str, str]], **options: Any) -> dict[str, list[float]]:
        assert options == {"batch_size": 8, "gpus": 0, "progress_bar": False}
        asked.extend(rows)
        return {"scores": [len(row["mt"]) / len(row.get("ref", row["src"])) for row in rows]}

    made: Any = ModuleType("comet")
    made.asked, made.names = asked, []
    made.download_model = lambda name: made.names.append(name) or f"/{name}.ckpt"
    made.load_from_checkpoint = lambda path: SimpleNamespace(predict=predict)
    monkeypatch.setitem(sys.modules, "comet", made)
    return made


def test_rows_are_asked_in_its_own_form(package: Any) -> None:
    rows = [
        {"source": "abcd", "output": "xy", "reference": "vwxy"},
        {"source": "abcd", "output": "xy"},
        {"source": " ", "output": "xy", "reference": "z"},
        {"source": "s", "output": "", "references": ["ab", "c"]},
    ]
    first, second, third, fourth = Comet().score_many(rows)
    assert (first.score, first.percent, fourth.score) == (0.5, 50.0, 0.0)
    assert [second.failure, third.failure] == ["no reference to compare with", "no source to compare with"]
    assert package.asked == [{"src": "abcd", "mt": "xy", "ref": "vwxy"}, {"src": "s", "mt": "", "ref": "ab"}]
    assert package.names == ["Unbabel/wmt22-comet-da"]


def test_a_model_without_references(package: Any) -> None:
    assert Comet(model="Unbabel/kiwi", reference=False).score("xy", source="abcd").score == 0.5
    assert package.asked == [{"src": "abcd", "mt": "xy"}]


def test_what_is_missing_is_named(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> str:
        raise KeyError(name)

    package.download_model = refuse
    with pytest.raises(ModelError, match="metric/comet: the model a/b cannot be fetched or opened: 'a/b'"):
        Comet(model="a/b").score("x", "y", source="z")
    monkeypatch.setitem(sys.modules, "comet", None)
    with pytest.raises(MissingExtraError, match=r"metric/comet needs .* pip install unbabel-comet"):
        Comet().score("x", "y", source="z")
