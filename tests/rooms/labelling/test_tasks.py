"""Rows for Label Studio and Argilla, and what people answer there, read back."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from json_lines import write

from judgesmith import read_labels


def scored(
    path: Path, scale: tuple[float, float] = (1, 5), words: Sequence[str] = ()
) -> Path:
    """Rows as `score` writes them."""
    contract = {"judge": "help.json", "model": "m", "scale": scale}
    rows = []
    for n in range(12):
        verdict: dict[str, Any] = {
            "score": scale[0] + n % 5 * (scale[1] - scale[0]) / 4.5,
            "failure": None,
            "contract": contract,
        }
        if words:
            verdict["category"] = words[n % len(words)]
        texts = {"Ticket-ID": f"HD-{n}", "source": f"q {n * 7919}"}
        rows.append(texts | {"output": f"a {n * 104729}", "verdict": verdict})
    return write(path, rows)


def suggested(cli: Any, rows: Path, tasks: Path, *more: Any) -> list[dict[str, Any]]:
    ran = cli("suggest", rows, "--n", 12, "--tasks", tasks, *more)
    assert ran.code == 0, ran.err
    assert "12 with a verdict" in ran.said
    assert "who sees a verdict follows it" in ran.said
    read: list[dict[str, Any]] = json.loads(tasks.read_text())
    return read


def test_label_studio_and_back(cli: Any, tmp_path: Path) -> None:
    tasks = suggested(cli, scored(tmp_path / "s.jsonl"), tmp_path / "t.json")
    view = ET.parse(tmp_path / "t.xml").getroot()
    (stars,) = view.findall("Rating")
    assert (stars.get("name"), stars.get("toName")) == ("score", "output")
    assert stars.get("maxRating") == "5"
    for number, task in enumerate(tasks):
        (prediction,) = task["predictions"]
        assert prediction["model_version"] == "help.json"
        (result,) = prediction["result"]
        assert (result["from_name"], result["to_name"]) == ("score", "output")
        assert result["type"] == "rating"
        assert type(result["value"]["rating"]) is int
        # as its export has it: a number of the task, and the answers of two people, one of whom takes the prediction
        own = {**result, "value": {"rating": number % 5 + 1}}
        task["id"] = 900 + number
        task["annotations"] = [
            {"id": k, "completed_by": who, "result": [said]}
            for k, (who, said) in enumerate([("ann", result), ("bo", own)])
        ]
    (tmp_path / "back.json").write_text(json.dumps(tasks))
    labels = read_labels(tmp_path / "back.json", scale=(1, 5))
    assert {row.id for row in labels.rows} == {f"HD-{n}" for n in range(12)}
    assert all(row.suggested for row in labels.rows)
    assert all(len(row.single(labels.aspect)) == 2 for row in labels.rows)


def test_label_studio_asks_for_words_and_for_numbers(cli: Any, tmp_path: Path) -> None:
    for given in (("fail", "pass"), ("pass",), ("bad", "ok", "good")):
        rows = scored(tmp_path / "s.jsonl", words=given)
        tasks = suggested(cli, rows, tmp_path / "t.json")
        view = ET.parse(tmp_path / "t.xml").getroot()
        words = {one.get("value") for one in view.findall("Choices/Choice")}
        assert words == ({"fail", "pass"} if "pass" in given else set(given))
    (result,) = tasks[0]["predictions"][0]["result"]
    assert result["type"] == "choices"
    assert result["value"]["choices"][0] in words
    tasks = suggested(cli, scored(tmp_path / "s.jsonl", (0, 100)), tmp_path / "t.json")
    (number,) = ET.parse(tmp_path / "t.xml").getroot().findall("Number")
    assert (number.get("min"), number.get("max")) == ("0", "100")
    assert tasks[0]["predictions"][0]["result"][0]["type"] == "number"


def test_argilla_and_back(cli: Any, tmp_path: Path) -> None:
    rows, path = scored(tmp_path / "s.jsonl"), tmp_path / "r.json"
    records = suggested(cli, rows, path, "--tool", "argilla")
    for number, record in enumerate(records):
        # what `Record.from_dict` of its client takes
        names = {"id", "fields", "metadata", "suggestions", "responses", "vectors"}
        assert set(record) == names
        assert set(record["fields"]) == {"source", "output"}
        suggestion = record["suggestions"]["score"]
        assert set(suggestion) == {"value", "score", "agent"}
        assert type(suggestion["value"]) is int
        answer = {"value": number % 5 + 1, "user_id": "u"}
        record["responses"] = {"score": [answer]}
    path.write_text(json.dumps(records))
    labels = read_labels(path, scale=(1, 5))
    assert [row.scores["score"] for row in labels.rows][:5] == [1, 2, 3, 4, 5]
    assert {row.id for row in labels.rows} == {f"HD-{n}" for n in range(12)}


def test_a_suggestion_without_an_answer_is_no_label(cli: Any, tmp_path: Path) -> None:
    suggested(
        cli, scored(tmp_path / "s.jsonl"), tmp_path / "r.json", "--tool", "argilla"
    )
    cli("compile", tmp_path / "r.json", "--dry-run").refused("no row")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--tasks", "t.csv"), "name it .json"),
        (("--tasks", "t.json", "--tool", "argilla"), "whole numbers from 0 to 10"),
    ],
)
def test_what_cannot_be_written_is_refused(
    cli: Any, tmp_path: Path, monkeypatch: Any, options: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    cli("suggest", scored(tmp_path / "s.jsonl", (0, 100)), *options).refused(said)
