"""What the adapters share, and what they say where their framework is not installed."""

import sys
from pathlib import Path
from typing import Any

import pytest

import judgesmith as js
from judgesmith.adapters.saved import framework, opened, passages, scored
from judgesmith.errors import MissingExtraError, NoScoreError, OptionError
from judgesmith.programs.baselines.pairs import PairS


def test_several_passages_are_one_context_and_a_row_without_a_score_is_an_error(saved: dict[str, Any]) -> None:
    assert (passages(["one", "two"]), passages([])) == ("one\n\ntwo", None)
    judge, _ = opened(saved["judge"], None, saved["connection"], None)
    verdict = scored(judge.score("a source", "good 70"))
    assert (verdict.score, verdict.explanation) == (70.0, "It says 70.")
    with pytest.raises(NoScoreError):
        scored(judge.score("a source", "bad"))
    with pytest.raises(NoScoreError, match="the output is empty"):
        scored(judge.score("a source", ""))


def test_the_name_is_the_aspect_or_the_callers(saved: dict[str, Any]) -> None:
    judge = js.load(saved["judge"])
    assert opened(judge, None, None, None)[1] == "active-critic"
    judge.provenance = {"labels": {"aspect": "fluency"}}
    assert opened(judge, None, None, None)[1] == "fluency"
    assert opened(judge, None, None, "mine")[1] == "mine"
    with pytest.raises(OptionError, match="this judge has its model already"):
        opened(judge, None, saved["connection"], None)
    with pytest.raises(OptionError, match="against each other"):
        opened(PairS("overall"), None, None, None)


@pytest.mark.parametrize(
    ("make", "module", "command"),
    [
        ("inspect_scorer", "inspect_ai", "pip install inspect-ai"),
        ("deepeval_metric", "deepeval", "pip install deepeval"),
    ],
)
def test_a_missing_framework_names_its_command(
    make: str, module: str, command: str, saved: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    for name in [name for name in sys.modules if name.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, name)
    more = {"threshold": 50} if make == "deepeval_metric" else {}
    with pytest.raises(MissingExtraError, match=command):
        getattr(js, make)(**saved, **more)


def test_a_module_a_framework_lacks_is_not_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_framework.py").write_text("import surely_not_installed")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="surely_not_installed"):
        framework("broken_framework", "it", "broken-framework")
