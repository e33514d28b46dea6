"""programs/DSPY.md: every block is run, in its order, as a user would; without a network."""

import asyncio
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.streaming import StatusMessageProvider
from dspy.utils import DummyLM
from dspy.utils.callback import BaseCallback

import judgesmith as js

PAGE = (Path(__file__).resolve().parents[1] / "programs/DSPY.md").read_text(encoding="utf-8")
HABITS, OWN = PAGE.split("## Use it on your own DSPy program")
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
TITLES = re.findall(r"^### (\d+)\. (.+)$", HABITS, re.MULTILINE)


class Answering(dspy.BaseLM):  # type: ignore[misc]
    """A model that gives a text of its own making to every prompt."""

    def __init__(self, answer: Any) -> None:
        super().__init__("scripted/model", cache=False)
        self.answer = answer

    def forward(self, prompt: Any = None, messages: Any = None, **_: Any) -> Any:
        from litellm import ModelResponse

        text = self.answer(messages or [{"role": "user", "content": prompt}])
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        used = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
        return ModelResponse(choices=[choice], usage=used, model="scripted/model")


def critic(messages: Any) -> str:
    if "[[ ## summary ## ]]" in messages[0]["content"]:
        return "[[ ## summary ## ]]\nThe hall is closed.\n\n[[ ## completed ## ]]"
    return "Explanation: A word is wrong; mend it.\nScore: 70"


def marks() -> Answering:
    """The number after "mark", in the field that is asked for."""

    def answer(messages: Any) -> str:
        field = "stars" if "stars" in messages[0]["content"] else "score"
        said = re.findall(r"mark (\d+)", messages[-1]["content"])[-1]
        return f"[[ ## {field} ## ]]\n{said}\n\n[[ ## completed ## ]]"

    return Answering(answer)


def says(*answers: dict[str, str]) -> DummyLM:
    return DummyLM(list(answers) * 4)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGESMITH_CACHE", str(tmp_path / "calls.sqlite"))
    with dspy.context(lm=Answering(critic), num_threads=2):
        yield


def known() -> dict[str, Any]:
    """The names that the page uses; mlflow is None where it is not installed."""
    there = importlib.util.find_spec("mlflow") is not None and importlib.util.find_spec("mlflow.dspy") is not None
    mlflow = importlib.import_module("mlflow") if there else None
    given = {"BaseCallback": BaseCallback, "StatusMessageProvider": StatusMessageProvider, "marks": marks, "says": says}
    return {"js": js, "dspy": dspy, "asyncio": asyncio, "mlflow": mlflow, **given}


def test_there_are_twenty() -> None:
    assert [int(number) for number, _ in TITLES] == list(range(1, 21))
    assert len(BLOCK.findall(HABITS)) == 20


def test_every_habit_works() -> None:
    names = known()
    for (number, title), block in zip(TITLES, BLOCK.findall(HABITS), strict=True):
        try:
            exec(compile(block, f"habit {number}", "exec"), names)
        except Exception as error:
            raise AssertionError(f"{number}. {title}: {type(error).__name__}: {error}") from error


def test_ones_own_program_is_compiled_as_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    names = known()
    for number, block in enumerate(BLOCK.findall(OWN), start=1):
        exec(compile(block, f"own program {number}", "exec"), names)
    assert Path("reviewer.json").exists()
    assert "r+rho+tau|pooled" in capsys.readouterr().out
    assert len(names["tuned"].predictors()[0].demos) > 0


def test_the_page_is_found_and_has_no_line_too_long() -> None:
    readme = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
    assert "programs/DSPY.md" in readme
    assert max(map(len, PAGE.splitlines())) <= 130
