"""What the adapters share, and what they say where their framework is not installed."""

import sys
from pathlib import Path
from typing import Any

import pytest

import judgesmith as js
from judgesmith.adapters.saved import SavedJudge, framework, passages
from judgesmith.errors import MissingExtraError, NoScoreError, OptionError
from judgesmith.programs.baselines.pairs import PairS
from judgesmith.signatures.values import Item


def test_a_row_without_a_score_is_an_error(saved: dict[str, Any]) -> None:
    made = SavedJudge.open(**saved)
    verdict = made.score(Item("good 70", "a source"))
    assert (verdict.score, verdict.explanation) == (70.0, "It says 70.")
    told = made.about(verdict)
    assert (told["model"], told["scale"], len(told["judge"])) == ("openai/fake", "0..100", 12)
    with pytest.raises(NoScoreError):
        made.score(Item("bad", "a source"))
    with pytest.raises(NoScoreError, match="the output is empty"):
        made.score(Item("", "a source"))


def test_the_name_is_the_aspect_or_the_callers(saved: dict[str, Any]) -> None:
    judge = js.load(saved["judge"])
    assert SavedJudge.open(judge).name == "active-critic"
    judge.provenance = {"labels": {"aspect": "fluency"}}
    assert SavedJudge.open(judge).name == "fluency"
    assert SavedJudge.open(judge, name="mine").name == "mine"
    with pytest.raises(OptionError, match="this judge has its model already"):
        SavedJudge.open(judge, connection=saved["connection"])
    with pytest.raises(OptionError, match="against each other"):
        SavedJudge.open(PairS("overall"), lm=None)


def test_several_passages_are_one_context() -> None:
    assert passages(["one", "two"]) == "one\n\ntwo"
    assert passages([]) is None


@pytest.mark.parametrize(
    ("make", "module", "command"),
    [
        ("inspect_scorer", "inspect_ai", "pip install inspect-ai"),
        ("deepeval_metric", "deepeval", "pip install deepeval"),
        ("ragas_metric", "ragas", "pip install ragas"),
    ],
)
def test_a_missing_framework_names_its_command(
    make: str, module: str, command: str, saved: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Hidden(module), *sys.meta_path])
    more = {"threshold": 50} if make == "deepeval_metric" else {}
    with pytest.raises(MissingExtraError, match=command):
        getattr(js, make)(**saved, **more)


class Hidden:
    """A package that is not installed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == self.name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_a_module_that_a_framework_itself_lacks_is_not_taken_for_the_framework(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_framework.py").write_text("import surely_not_installed")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="surely_not_installed"):
        framework("broken_framework", "it", "broken-framework")
