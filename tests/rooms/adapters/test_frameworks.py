"""A saved judge inside other frameworks, with the real packages where they are installed, and their result files."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from json_lines import write

from judgesmith.datasets.loading import read_labels, read_outputs
from judgesmith.errors import LabelsError, MissingExtraError, NoScoreError
from judgesmith.programs.judge import Judge
from judgesmith.programs.loading import load
from judgesmith.rooms.adapters import frameworks


@pytest.fixture
def judge(saved: dict[str, Any]) -> Judge:
    """It gives "good N" the score N of 100, and any other output none."""
    return load(saved["judge"], connection=saved["connection"])


@pytest.mark.parametrize("kind", ["json", "eval"])
def test_inspect_scores_samples_and_its_log_is_read(
    judge: Judge, tmp_path: Path, kind: Any
) -> None:
    inspect = pytest.importorskip("inspect_ai")
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    outputs = [
        ModelOutput.from_content("mockllm/model", text)
        for text in ("good 80", "good 20")
    ]
    for output in outputs:  # else Inspect would fetch a tokenizer
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    task = inspect.Task(
        dataset=[
            Sample(id=f"s{n}", input=f"Question {n}?", target="Yes.") for n in range(2)
        ],
        scorer=frameworks.inspect_scorer(judge),
    )
    model = get_model("mockllm/model", custom_outputs=outputs)
    (log,) = inspect.eval(
        task,
        model=model,
        log_dir=str(tmp_path / "logs"),
        display="none",
        max_samples=1,
        log_format=kind,
    )
    assert log.status == "success", log.error
    found = {sample.id: next(iter(sample.scores.values())) for sample in log.samples}
    assert {name: score.value for name, score in found.items()} == {
        "s0": 80.0,
        "s1": 20.0,
    }
    (file,) = (tmp_path / "logs").glob(f"*.{kind}")
    read = read_outputs(file)
    assert [row.output for row in read.rows] == ["good 80", "good 20"]
    assert read.rows[0].source == "Question 0?"
    assert [record["judges"]["judgesmith"]["score"] for record in read.records] == [
        80.0,
        20.0,
    ]


def test_a_failure_in_inspect_is_an_error(judge: Judge) -> None:
    pytest.importorskip("inspect_ai")
    scorer = frameworks.inspect_scorer(judge)
    state = SimpleNamespace(
        input_text="Question?", output=SimpleNamespace(completion="bad")
    )
    with pytest.raises(NoScoreError):
        asyncio.run(scorer(state, SimpleNamespace(text="")))


def test_deepeval_measures(judge: Judge) -> None:
    pytest.importorskip("deepeval")
    from deepeval.test_case import LLMTestCase

    metric = frameworks.deepeval_metric(judge, threshold=0.5)
    assert (
        metric.measure(LLMTestCase(input="Question?", actual_output="good 80")) == 0.8
    )
    assert metric.is_successful()
    assert metric.__name__ == "judgesmith"
    asyncio.run(
        metric.a_measure(LLMTestCase(input="Question?", actual_output="good 20"))
    )
    assert metric.score == 0.2
    assert not metric.is_successful()
    with pytest.raises(NoScoreError):
        metric.measure(LLMTestCase(input="Question?", actual_output="bad"))


def test_ragas_scores_a_turn(judge: Judge) -> None:
    ragas = pytest.importorskip("ragas")
    metric = frameworks.ragas_metric(judge)
    sample = ragas.SingleTurnSample(
        user_input="Question?", response="good 60", retrieved_contexts=["A context."]
    )
    assert asyncio.run(metric.single_turn_ascore(sample)) == 60.0
    with pytest.raises(NoScoreError):
        asyncio.run(
            metric.single_turn_ascore(
                ragas.SingleTurnSample(user_input="Question?", response="bad")
            )
        )


def test_langsmith_evaluates_offline(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation = pytest.importorskip("langsmith.evaluation")
    from langsmith.evaluation.evaluator import run_evaluator
    from langsmith.schemas import Example, Run

    assert evaluation
    judged = run_evaluator(frameworks.langsmith_evaluator(judge))
    now = {
        "start_time": "2026-01-01T00:00:00",
        "trace_id": "00000000-0000-0000-0000-000000000001",
    }
    run = Run(
        id=now["trace_id"],
        name="r",
        run_type="chain",
        inputs={"question": "Q?"},
        outputs={"text": "good 70"},
        **now,
    )
    example = Example(
        id=now["trace_id"], inputs={"question": "Q?"}, outputs={"text": "Yes."}
    )
    found = judged.evaluate_run(run, example)
    assert (found.key, found.score) == ("judgesmith", 70.0)


def test_langfuse_evaluates(judge: Judge) -> None:
    pytest.importorskip("langfuse")
    judged = frameworks.langfuse_evaluator(judge, name="truth")
    found = asyncio.run(
        judged(
            input="Question?", output="good 40", expected_output="Yes.", metadata=None
        )
    )
    assert (found.name, found.value) == ("truth", 40.0)


def test_promptfoo_and_langsmith_in_their_forms(judge: Judge) -> None:
    found = frameworks.promptfoo_assert(
        "good 80", {"vars": {"source": "Question?"}, "config": {}}, judge=judge
    )
    assert found["pass"]
    assert found["score"] == 0.8
    assert isinstance(found["reason"], str)
    strict = {"prompt": "Question?", "vars": {}, "config": {"threshold": 0.9}}
    assert not frameworks.promptfoo_assert("good 80", strict, judge=judge)["pass"]
    with pytest.raises(NoScoreError):
        frameworks.promptfoo_assert(
            "bad", {"vars": {}, "prompt": "Question?"}, judge=judge
        )
    judged = frameworks.langsmith_evaluator(judge)
    assert (
        judged({"question": "Q?"}, {"output": "good 30"}, {"output": "Yes."})["score"]
        == 30.0
    )
    with pytest.raises(KeyError, match="there is no 'input'; there are a, b"):
        judged({"a": 1, "b": 2}, {"output": "good 30"}, None)


def test_a_framework_that_is_not_there_is_said(
    monkeypatch: pytest.MonkeyPatch, judge: Judge
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "deepeval.metrics", None)
    monkeypatch.setitem(sys.modules, "deepeval", None)
    with pytest.raises(MissingExtraError, match="pip install deepeval"):
        frameworks.deepeval_metric(judge)


# Result files --------------------------------------------------------------------------------------------------------

TEXTS = [f"Answer {n * n} to question {n * 7919}" for n in range(12)]


def inspect_sample(n: int) -> dict[str, Any]:
    scores = {
        "model_graded": {"value": "CI"[n % 3 == 0], "explanation": f"reason {n}"},
        "length": {"value": n},
    }
    turns = [{"role": "user", "content": f"Question {n}?"}]
    output = {
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": [{"type": "text", "text": TEXTS[n]}],
                }
            }
        ]
    }
    return {
        "id": n,
        "epoch": 1,
        "input": turns,
        "target": "Yes",
        "output": output,
        "scores": scores,
    }


def promptfoo(n: int, *, thumb: bool = False) -> dict[str, Any]:
    parts = [
        {
            "pass": n % 3 > 0,
            "score": float(n % 3 > 0),
            "reason": f"reason {n}",
            "assertion": {"type": "llm-rubric"},
        }
    ]
    parts += (
        [{"pass": n % 2 == 0, "score": 1, "reason": "", "assertion": {"type": "human"}}]
        if thumb
        else []
    )
    grading = {
        "pass": n % 3 > 0,
        "score": n % 3 / 2,
        "reason": f"all {n}",
        "componentResults": parts,
    }
    about = {
        "testIdx": n,
        "promptIdx": 0,
        "prompt": {"raw": f"Question {n}?"},
        "provider": {"id": "openai:x"},
    }
    return about | {
        "vars": {"q": n},
        "response": {"output": TEXTS[n]},
        "gradingResult": grading,
        "success": True,
    }


def deepeval(n: int) -> dict[str, Any]:
    metrics = [
        {
            "name": "Correctness [GEval]",
            "score": n / 12,
            "success": True,
            "reason": f"reason {n}",
        }
    ]
    metrics[0] |= {"score": 0.0, "error": "timed out"} if n == 5 else {}
    return {
        "name": f"case {n}",
        "input": f"Question {n}?",
        "actualOutput": TEXTS[n],
        "metricsData": metrics,
    }


def lm_eval(n: int) -> dict[str, Any]:
    made = {
        "doc_id": n,
        "doc": {"q": n},
        "target": "Yes",
        "arguments": [[f"Question {n}?", {"until": []}]],
    }
    return made | {
        "resps": [[TEXTS[n]]],
        "filtered_resps": [TEXTS[n]],
        "exact_match": float(n % 3 > 0),
    }


def result_file(tool: str, folder: Path) -> tuple[Path, str]:
    """A result file, and one of its judges."""
    if tool == "lm-eval":
        return write(
            folder / "samples.jsonl", [lm_eval(n) for n in range(12)]
        ), "exact_match"
    if tool == "inspect.eval":
        path = folder / "log.eval"
        with zipfile.ZipFile(path, "w") as log:
            log.writestr("header.json", "{}")
            for n in range(12):
                log.writestr(
                    f"samples/{n:02}_epoch_1.json", json.dumps(inspect_sample(n))
                )
        return path, "model_graded"
    promptfoos = {
        "evalId": "e",
        "results": {"version": 3, "results": [promptfoo(n) for n in range(12)]},
    }
    data: dict[str, tuple[Any, str]] = {
        "inspect": (
            {
                "version": 2,
                "eval": {"task": "t"},
                "samples": [inspect_sample(n) for n in range(12)],
            },
            "length",
        ),
        "promptfoo": (promptfoos, "promptfoo"),
        "deepeval": (
            {"testRunData": {"testCases": [deepeval(n) for n in range(12)]}},
            "Correctness [GEval]",
        ),
    }
    path = folder / f"{tool}.json"
    path.write_text(json.dumps(data[tool][0]), encoding="utf-8")
    return path, data[tool][1]


@pytest.mark.parametrize(
    "tool", ["inspect", "inspect.eval", "promptfoo", "deepeval", "lm-eval"]
)
def test_evaluate_starts_from_result_files(cli: Any, tmp_path: Path, tool: str) -> None:
    path, name = result_file(tool, tmp_path)
    read = read_outputs(path)
    assert [row.output for row in read.rows] == TEXTS
    assert "Question 3?" in read.rows[3].source
    assert not any(row.scores for row in read.rows)  # a scorer is no person
    ids = [row.id for row in read.rows]
    rated = [
        {"id": one, "label": ("fail", "pass")[n % 4 > 0]} for n, one in enumerate(ids)
    ]
    labels = write(tmp_path / "labels.jsonl", rated)
    told = cli("evaluate", labels, path, "--human", "label", "--json").told
    assert name in told["judges"]
    words = (
        "evaluate",
        labels,
        path,
        "--human",
        "label",
        "--judge",
        f"J=judges.{name}",
        "--json",
    )
    (row,) = cli(*words).told["judges"].values()
    assert row["label"]["pooled"]["auc"]["n"] == (
        11 if tool == "deepeval" else 12
    )  # what timed out has no score


def test_the_reasons_of_a_result_file_stand_beside_differences(
    cli: Any, tmp_path: Path
) -> None:
    path, _ = result_file("inspect.eval", tmp_path)
    labels = write(
        tmp_path / "labels.jsonl",
        [{"id": str(n), "label": ("fail", "pass")[n % 3 > 0]} for n in range(11)],
    )
    with labels.open("a", encoding="utf-8") as more:
        more.write(json.dumps({"id": "11", "label": "fail"}) + "\n")
    told = cli(
        "evaluate",
        labels,
        path,
        "--human",
        "label",
        "--judge",
        "judges.model_graded",
        "--json",
    ).told
    (one,) = told["decisions"][0]["worst"]
    assert (one["id"], one["judge_reason"]) == ("11", "reason 11")


def test_thumbs_in_promptfoo_are_labels(tmp_path: Path) -> None:
    path = tmp_path / "rated.json"
    rated = {"results": {"results": [promptfoo(n, thumb=True) for n in range(12)]}}
    path.write_text(json.dumps(rated), encoding="utf-8")
    labels = read_labels(path)
    assert labels.kind == "binary"
    assert labels.scores.tolist() == [float(n % 2 == 0) for n in range(12)]
    record = read_outputs(path).records[0]
    assert set(record["judges"]) == {
        "llm-rubric"
    }  # a person's thumb took the place of the whole


def test_a_log_that_is_none_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "x.eval").write_text("no log", encoding="utf-8")
    with pytest.raises(LabelsError, match="inspect log convert --to json"):
        read_outputs(tmp_path / "x.eval")


def test_lm_evals_choices_are_texts(tmp_path: Path) -> None:
    said = {
        "filtered_resps": [[-2.0, False], [-1.0, False]],
        "resps": [[[-2.0, False]], [[-1.0, False]]],
    }
    choice = (
        lm_eval(1)
        | said
        | {"doc": {"choices": {"text": ["no", "yes"]}}, "acc": 1.0, "metrics": ["acc"]}
    )
    read = read_outputs(write(tmp_path / "samples.jsonl", [choice]))
    assert read.rows[0].output == "yes"
    assert read.records[0]["judges"] == {"acc": {"score": 1.0}}


def test_the_commands_of_the_page_run(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[3] / "docs/pages/howto/platforms.md").read_text(
        encoding="utf-8"
    )
    section = page.split("### Inspect, DeepEval")[1].split("\n##")[0]
    monkeypatch.chdir(tmp_path)
    result_file("promptfoo", tmp_path)[0].rename("results.json")
    lines = [
        "id,label",
        *(f"{n}-0,{('fail', 'pass')[n % 3 > 0 or n == 6]}" for n in range(12)),
    ]
    Path("labels.csv").write_text("\n".join(lines), encoding="utf-8")
    commands = re.findall(r"^\$ judgesmith (.*)$", section, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        done = cli(*shlex.split(command))
        assert done.code == 0, f"{command}: {done.err}"
