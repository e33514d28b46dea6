"""A model that follows its examples passes the control; one that does not fails it, and `compile` can say so."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from judgesmith.cli.main import app
from judgesmith.experiments.studies import control
from judgesmith.programs import controls
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.testing.fake import Ask, FakeModel

SIZES = (4, 8)


class Steps:
    """Counts judged rows."""

    def __init__(self) -> None:
        self.done = 0

    def step(
        self, title: str | None = None, *, there: bool = False, steps: int = 1
    ) -> None:
        self.done += steps


def topic_of(text: str) -> str:
    for topic in ("bills", "software", "deliveries"):
        if any(reply.output in text for reply in replies_of(topic)):
            return topic
    raise AssertionError(text)


def replies_of(topic: str) -> list[control.Reply]:
    pool, judged = control.replies("topic3")
    more = [*control.replies("topic")[0], *control.replies("topic")[1]]
    return [one for one in [*pool, *judged, *more] if one.id.startswith(topic)]


def pupil(ask: Ask) -> str:
    """Give a reply the score that the last example of its topic has."""
    turns = [one for one in ask.body["messages"] if one["role"] != "system"]
    wanted = topic_of(turns[-1]["content"])
    score = "Score: 3"
    for shown, said in zip(turns[:-1:2], turns[1:-1:2], strict=True):
        if topic_of(shown["content"]) == wanted:
            score = said["content"]
    return score


def asked(lm: LanguageModel, path: Path) -> tuple[list[control.Cell], control.Answers]:
    cells = control.cells(SIZES, 2)
    answers = control.Answers(path)
    for cell in cells:
        control.ask(lm, cell, answers, Steps())
    return cells, answers


def test_a_model_that_follows_its_examples_passes(tmp_path: Path) -> None:
    fake = FakeModel()
    fake.answer = pupil
    cells, answers = asked(fake.lm, tmp_path / "answers.jsonl")
    said = control.verdict(cells, answers)
    assert said.passed
    by_cell = {
        (one.rule, one.shown, one.labels): one.draws
        for one in control.table(cells, answers)
    }
    assert min(by_cell["topic", 8, "right"]) > 2.9
    assert max(by_cell["topic", 8, "turned round"]) < -2.9
    assert by_cell["topic3", 8, "right"] == pytest.approx([3.0, 3.0])


def test_a_model_that_ignores_its_examples_fails(tmp_path: Path) -> None:
    fake = FakeModel()
    fake.answer = lambda ask: f"Score: {1 + len(ask.judged) % 5}"
    cells, answers = asked(fake.lm, tmp_path / "answers.jsonl")
    said = control.verdict(cells, answers)
    assert not said.passed
    assert "do not expect examples to help" in said.sentence("openai/fake")


def test_an_interrupted_control_goes_on_where_it_was(tmp_path: Path) -> None:
    fake = FakeModel()
    fake.answer = pupil
    path = tmp_path / "answers.jsonl"
    cells, _ = asked(fake.lm, path)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:50]), encoding="utf-8")
    steps = Steps()
    answers = control.Answers(path)
    for cell in cells:
        control.ask(fake.lm, cell, answers, steps)
    assert steps.done == len(lines) - 50


def test_examples_are_apart_from_judged_rows_and_each_topic_is_shown_equally_often() -> (
    None
):
    for rule in control.RULES:
        pool, judged = control.replies(rule)
        assert not {one.output for one in pool} & {one.output for one in judged}
        assert len(judged) == control.JUDGED
    shown = control.examples(control.Cell("topic3", 12))
    scores = sorted(one["score"] for one in shown)
    assert scores == [0] * 4 + [50] * 4 + [100] * 4
    turned = control.examples(control.Cell("topic3", 12, "turned round"))
    assert [one["score"] for one in turned] == [100 - one["score"] for one in shown]


def test_the_command_keeps_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGESMITH_MODELS", str(tmp_path / "models"))
    fake = FakeModel()
    fake.answer = lambda ask: "Score: 3"

    def opened(*_: Any, **__: Any) -> LanguageModel:
        return fake.lm

    monkeypatch.setattr("judgesmith.programs.models.lm.language_model", opened)
    folder = tmp_path / "control"
    command = ["study", "control", "openai/fake", "--sizes", "4", "--draws", "1"]
    done = CliRunner().invoke(app, [*command, "-o", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["passed"] is False
    assert controls.failed_control("openai/fake") == found["sentence"]
    assert controls.failed_control("openai/other") is None
    assert (folder / "control-openai-fake.json").exists()


def test_sizes_that_are_none_are_refused(tmp_path: Path) -> None:
    command = ["study", "control", "openai/fake", "--sizes", "0,8"]
    done = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "control")])
    assert "whole numbers from 1 to 24" in str(done.exception)
