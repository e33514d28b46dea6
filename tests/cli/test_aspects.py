"""`judgesmith aspects`."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from judgesmith.cli import aspects as aspect_commands
from judgesmith.errors import OptionError
from judgesmith.programs.aspects import aspects


def run(*arguments: object) -> Result:
    app = typer.Typer()
    aspect_commands.register(app)
    app.command("other")(lambda: None)  # an app of one command would take the name for an argument
    return CliRunner().invoke(app, ["aspects", *map(str, arguments)])


def words(result: Result) -> str:
    assert result.exit_code == 0, result.exception
    return " ".join(result.stdout.replace("│", " ").split())


def test_all_tasks_with_their_aspects() -> None:
    shown = words(run())
    for task in aspects().tasks.values():
        assert f"{task.name}: " in shown
        assert all(name in shown for name in task.aspects)
    assert "(more is worse)" in shown


def test_one_task_by_an_alias() -> None:
    shown = words(run("qa"))
    assert "question-answering: " in shown
    assert "conciseness" in shown
    assert "simplicity" not in shown


def test_one_aspect_in_full() -> None:
    shown = words(run("simplification/meaning"))
    aspect = aspects().find("meaning", "simplification")
    for text in (aspect.definition, aspect.low, aspect.high, *aspect.leave_aside, "beside the original text"):
        assert text in shown


def test_json_has_everything() -> None:
    data = json.loads(words(run("--json")))
    assert {task["name"]: len(task["aspects"]) for task in data["tasks"]} == {
        name: len(task.aspects) for name, task in aspects().tasks.items()
    }
    one = json.loads(words(run("hallucination", "--json")))
    assert one["aspect"]["negative"] is True
    assert one["task"]["name"] == "general"
    assert [task["name"] for task in json.loads(words(run("story", "--json")))["tasks"]] == ["story"]


def test_a_file_is_shown_without_obeying_its_markup(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text('tasks: {story: {aspects: {wit: {definition: "[red]x[/nope]", low: "\\x1b[2J", high: h}}}}')
    shown = words(run("wit", "--file", path))
    assert "[red]x[/nope]" in shown
    assert "\x1b[2J" not in shown
    assert "wit" in words(run("story", "--file", path))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("engagment", "did you mean 'engagement'"),
        ("empathy", "dialogue/empathy, story/empathy"),
        ("dialog/wit", "dialogue has no aspect 'wit'"),
    ],
)
def test_an_unknown_name_is_an_error_in_words(name: str, said: str) -> None:
    result = run(name)
    assert isinstance(result.exception, OptionError)
    assert said in str(result.exception)
