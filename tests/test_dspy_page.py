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
from parrot import Forward

import judgesmith as js

PAGE = (Path(__file__).resolve().parents[1] / "programs/DSPY.md").read_text(
    encoding="utf-8"
)
HABITS, OWN = PAGE.split("## Use it on your own DSPy program")
OWN, JUDGED = OWN.split("## Optimize your own program with a judge")
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
TITLES = re.findall(r"^### (\d+)\. (.+)$", HABITS, re.MULTILINE)


def critic(messages: Any) -> str:
    if "[[ ## summary ## ]]" in messages[0]["content"]:
        return "[[ ## summary ## ]]\nThe hall is closed.\n\n[[ ## completed ## ]]"
    return "Explanation: A word is wrong; mend it.\nScore: 70"


def marks() -> Forward:
    """The number after "mark", in the field that is asked for."""

    def answer(messages: Any) -> str:
        field = "stars" if "stars" in messages[0]["content"] else "score"
        said = re.findall(r"mark (\d+)", messages[-1]["content"])[-1]
        return f"[[ ## {field} ## ]]\n{said}\n\n[[ ## completed ## ]]"

    return Forward(answer)


def says(*answers: dict[str, str]) -> DummyLM:
    return DummyLM(list(answers) * 4)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGESMITH_CACHE", str(tmp_path / "calls.sqlite"))
    with dspy.context(lm=Forward(critic), num_threads=2):
        yield


def known() -> dict[str, Any]:
    """The names that the page uses; mlflow is None where it is not installed."""
    there = (
        importlib.util.find_spec("mlflow") is not None
        and importlib.util.find_spec("mlflow.dspy") is not None
    )
    mlflow = importlib.import_module("mlflow") if there else None
    given = {
        "BaseCallback": BaseCallback,
        "StatusMessageProvider": StatusMessageProvider,
        "marks": marks,
        "says": says,
    }
    return {"js": js, "dspy": dspy, "asyncio": asyncio, "mlflow": mlflow, **given}


def test_every_one_of_twenty_habits_works() -> None:
    assert [int(number) for number, _ in TITLES] == list(range(1, 21))
    names = known()
    for (number, title), block in zip(TITLES, BLOCK.findall(HABITS), strict=True):
        try:
            exec(compile(block, f"habit {number}", "exec"), names)
        except Exception as error:
            raise AssertionError(
                f"{number}. {title}: {type(error).__name__}: {error}"
            ) from error


def test_ones_own_program_is_compiled_as_the_page_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = known()
    for number, block in enumerate(BLOCK.findall(OWN), start=1):
        exec(compile(block, f"own program {number}", "exec"), names)
    assert Path("reviewer.json").exists()
    assert "r+rho+tau|pooled" in capsys.readouterr().out
    assert len(names["tuned"].predictors()[0].demos) > 0


def test_a_program_is_optimized_with_a_judge_as_the_page_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The model answers politely once it is shown how; the judge likes that."""

    def answer(messages: Any) -> str:
        shown = any("Thank you" in str(message["content"]) for message in messages)
        said = "Thank you for asking! It is so." if shown else "See the page."
        return f"[[ ## answer ## ]]\n{said}\n\n[[ ## completed ## ]]"

    def judged(messages: Any) -> str:
        return f"Explanation: As it should be.\nScore: {90 if 'Thank you' in messages[-1]['content'] else 20}"

    names = known() | {"rag_lm": Forward(answer), "judge_lm": Forward(judged)}
    for number, block in enumerate(BLOCK.findall(JUDGED), start=1):
        exec(compile(block, f"judged {number}", "exec"), names)
    said = capsys.readouterr().out
    assert "20 before, 90 after" in said
    assert "0 without a score" in said
    assert float(said.splitlines()[-1]) > 0.9
