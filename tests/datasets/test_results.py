"""Result files of other tools whose records are not as the tool writes them: a row or a refusal that names it."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judgesmith.datasets.exports import OF_PARTS, row_reader, rows_of_results
from judgesmith.datasets.exports.reading import recognised
from judgesmith.datasets.loading import read_outputs
from judgesmith.errors import LabelsError

LM_EVAL: dict[str, Any] = {
    "doc_id": 3,
    "doc": {"choices": {"text": ["no", "yes"]}},
    "target": "yes",
    "arguments": [["Is it?", " no"], ["Is it?", " yes"]],
    "resps": [[["-2.5", "False"]], [["-1.5", "True"]]],
    "filtered_resps": [["-2.5", "False"], ["-1.5", "True"]],
    "metrics": ["acc"],
    "acc": 1.0,
}
SAMPLE: dict[str, Any] = {
    "id": 1,
    "input": [{"role": "user", "content": "Is it?"}],
    "target": "yes",
    "output": {"choices": [{"message": {"content": [{"text": "Yes."}]}}]},
    "scores": {"match": {"value": "C", "explanation": "equal"}},
}
PROMPTFOO: dict[str, Any] = {
    "testIdx": 0,
    "prompt": {"raw": "Is it?"},
    "provider": {"id": "x"},
    "response": {"output": "Yes."},
    "gradingResult": {
        "score": 1,
        "componentResults": [{"score": 1, "assertion": {"type": "equals"}}],
    },
}
DEEPEVAL: dict[str, Any] = {
    "input": "Is it?",
    "actualOutput": "Yes.",
    "metricsData": [{"name": "G", "score": 0.5, "reason": "short"}],
}
FILES: dict[str, Any] = {
    "inspect": {"eval": {}, "samples": [SAMPLE, copy.deepcopy(SAMPLE)]},
    "promptfoo": {"results": {"results": [PROMPTFOO, copy.deepcopy(PROMPTFOO)]}},
    "deepeval": {"testCases": [DEEPEVAL, copy.deepcopy(DEEPEVAL)]},
}
ODD: tuple[Any, ...] = (
    *(None, [], {}, 3, "x", True, float("nan"), ""),
    *([[]], [[], []], [None], [3], {"a": 1}, [["a", 1]]),
)


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a record at which something stands."""
    inner = enumerate(value) if isinstance(value, list) else ()
    for key, part in value.items() if isinstance(value, dict) else inner:
        yield (*before, key)
        yield from places(part, (*before, key))


def changed(value: Any, place: tuple[Any, ...]) -> Iterator[Any]:
    """The record without what stands there, and with each odd value in its stead."""
    for odd in (places, *ODD):
        record = inner = copy.deepcopy(value)
        for key in place[:-1]:
            inner = inner[key]
        if odd is places:
            del inner[place[-1]]
        else:
            inner[place[-1]] = odd
        yield record


def test_a_sample_of_lm_eval_is_a_row_or_is_refused_by_its_line() -> None:
    refused = 0
    for record in (one for at in places(LM_EVAL) for one in changed(LM_EVAL, at)):
        try:
            assert isinstance(row_reader()(record, "samples.jsonl, line 7"), dict)
        except LabelsError as error:
            refused += 1
            assert str(error).startswith("samples.jsonl, line 7: ")
    assert refused > 50


@pytest.mark.parametrize("tool", FILES)
def test_a_result_is_a_row_or_is_refused_by_its_number(tool: str) -> None:
    refused = 0
    for place in places(FILES[tool]):
        if 1 not in place or place[-1] == 1:
            continue  # what is no part of the second record
        for data in changed(FILES[tool], place):
            try:
                assert isinstance(rows_of_results(data, "run.json"), list)
            except LabelsError as error:
                refused += 1
                assert str(error).startswith("run.json, row 2: ")
    assert refused > 10


def test_no_answer_is_refused_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    lines = [LM_EVAL, LM_EVAL | {"doc_id": 4, "filtered_resps": [[]]}]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with pytest.raises(LabelsError, match=r"samples\.jsonl, line 2: filtered_resps is"):
        read_outputs(path)


@pytest.mark.parametrize(
    ("said", "output"),
    [
        (["Yes."], "Yes."),
        ([["Yes."]], "Yes."),
        ([""], ""),
        ([["-2.5", "False"], ["-1.5", "True"]], "yes"),
        ([[-1.5, True], [-2.5, False]], "no"),
        ([["-inf", "False"], ["-1e3", "True"]], "yes"),
    ],
)
def test_answers_in_the_forms_that_lm_eval_writes(said: Any, output: str) -> None:
    row = row_reader()(LM_EVAL | {"filtered_resps": said}, "")
    assert row["output"] == output


def test_several_answers_to_one_question_are_not_one() -> None:
    message = "^line 1: filtered_resps holds 2 answers; keep one"
    with pytest.raises(LabelsError, match=message):
        row_reader()(LM_EVAL | {"filtered_resps": [["Yes.", "No."]]}, "line 1")


def test_the_likelihood_of_a_text_is_no_answer() -> None:
    record = LM_EVAL | {
        "filtered_resps": ["-45.1"],
        "metrics": ["word_perplexity"],
        "word_perplexity": 9.5,
    }
    with pytest.raises(LabelsError, match=r"^line 1: the record has the likelihood"):
        row_reader()(record, "line 1")


def test_an_answer_that_is_a_number_is_a_text() -> None:
    assert row_reader()(LM_EVAL | {"filtered_resps": ["42"]}, "")["output"] == "42"


def test_a_picture_of_promptfoo_is_an_empty_text() -> None:
    parts = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]
    data = {"results": {"results": [PROMPTFOO | {"response": {"output": parts}}]}}
    rows = rows_of_results(data, "run.json")
    assert rows is not None
    assert not rows[0].get("output")


@pytest.mark.parametrize("passed", [{}, {"pass": None}, {"pass": "no"}])
def test_a_thumb_of_promptfoo_that_points_nowhere_is_no_fail(
    passed: dict[str, Any],
) -> None:
    grading = {"componentResults": [{"assertion": {"type": "human"}, **passed}]}
    data = {"results": {"results": [PROMPTFOO | {"gradingResult": grading}]}}
    with pytest.raises(LabelsError, match=r"^run\.json, row 1: pass of a person's"):
        rows_of_results(data, "run.json")


def test_an_answer_of_promptfoo_that_is_no_text_is_shown_whole() -> None:
    calls = [{"function": {"name": "f", "arguments": "{}"}}]
    data = {"results": {"results": [PROMPTFOO | {"response": {"output": calls}}]}}
    rows = rows_of_results(data, "run.json")
    assert rows is not None
    assert json.loads(rows[0]["output"]) == calls


def test_a_record_of_an_export_that_lacks_its_part_is_refused_by_its_row() -> None:
    task = {"id": 1, "data": {"text": "a"}, "annotations": []}
    rows = [task, task, {"id": 3, "annotations": []}]
    export = recognised(rows, "tasks.json")
    assert export is not None
    with pytest.raises(LabelsError, match=r"tasks\.json, row 3: a record of Label"):
        export.records(rows, "tasks.json")


def test_odd_ids_and_names_stop_no_export() -> None:
    result = {"id": [None], "type": "rating", "from_name": "q", "value": {"rating": 4}}
    region = {"id": [None], "type": "labels", "value": {"start": 0, "labels": ["a"]}}
    annotations = [{"completed_by": 1, "result": [result, region]}]
    tasks = [{"id": 1, "data": {"text": "a"}, "annotations": annotations}]
    export = recognised(tasks, "tasks.json")
    assert export is not None
    export.records(tasks, "tasks.json")
    assert export.left[OF_PARTS] == 1
