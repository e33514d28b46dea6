"""The tutorials of docs/pages/tutorials are run as they stand there.

They run in their order, in an empty folder; a server on loopback stands for the model. Commands of all other pages are
read by the command line, without being run. `make tutorials` runs them again, each in a fresh environment with what it
says to install.
"""

import contextlib
import io
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from loopback import Server
from pages_run import as_reader, run, tutorials
from tracked import tracked

from judgesmith.cli import main as command_line
from judgesmith.errors import JudgesmithError

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS, EXAMPLES = ROOT / "docs/pages/tutorials", ROOT / "docs/pages/examples"
#: Pages with commands that need a model, a machine or a data set which is not here.
READ = [
    path
    for path in tracked(".md")
    if "$ judgesmith " in path.read_text(encoding="utf-8")
]


@pytest.fixture
def place(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return as_reader(tmp_path / "tutorial", server, monkeypatch)


@pytest.mark.parametrize("name", ["spreadsheet", "fastapi", "ci", "label", "agents"])
def test_a_tutorial_runs_as_it_stands(name: str, place: Path, cli: Any) -> None:
    folder = EXAMPLES if name == "fastapi" else TUTORIALS
    text = (folder / f"{name}.md").read_text(encoding="utf-8")
    ran = 0
    for step in tutorials.steps(text):
        if step.kind == "file":
            Path(step.title).parent.mkdir(parents=True, exist_ok=True)
            Path(step.title).write_text(step.text, encoding="utf-8")
        elif step.kind == "command":
            code, said = run(step.words, cli)
            assert code == step.code, (
                f"line {step.line}: {step.text}: exit code {code}\n{said[-3000:]}"
            )
            ran += 1
    assert ran >= 3


@pytest.mark.parametrize("name", ["compile", "estimate"])
def test_a_notebook_runs_and_shows_what_it_printed(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGESMITH_LM", "openai/gpt-4o-mini")
    cells = [
        c
        for c in json.loads((EXAMPLES / f"{name}.ipynb").read_text())["cells"]
        if c["cell_type"] == "code"
    ]
    names: dict[str, Any] = {}
    for number, cell in enumerate(cells, start=1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
        saved = "".join(
            line for output in cell["outputs"] for line in output.get("text", [])
        )
        assert bool(printed.getvalue()) == bool(saved), f"cell {number}"
        if (
            name == "estimate"
        ):  # it asks no model, so that its numbers are the same everywhere
            assert printed.getvalue() == saved, f"cell {number}"


def parsed(arguments: list[str]) -> str:
    """The command that these words name, once all of its options were read; nothing is run."""
    command: Any = typer.main.get_command(command_line.app)
    context: Any = None
    while hasattr(command, "resolve_command"):
        context = context or command.make_context("judgesmith", list(arguments))
        name, command, arguments = command.resolve_command(context, arguments)
        if hasattr(command, "resolve_command"):
            context = command.make_context(name, list(arguments), parent=context)
    return str(command.make_context(name, list(arguments), parent=context).info_name)


@pytest.mark.parametrize(
    "page", READ, ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_every_command_of_a_page_is_one_that_the_command_line_takes(page: Path) -> None:
    """Options of judges and searches (--set, or by their own names) are checked where the command is run."""
    text = page.read_text(encoding="utf-8")
    for words in (
        step.words for step in tutorials.steps(text) if step.kind == "command"
    ):
        if words[:1] == ["judgesmith"] and words[1:2] != ["--install-completion"]:
            words = words[: words.index("&")] if "&" in words else words
            try:
                parsed(words[1:])
            except (command_line.UsageError, JudgesmithError) as error:
                raise AssertionError(f"{shlex.join(words)}: {error}") from error


def test_an_option_that_is_none_would_be_found() -> None:
    with pytest.raises(command_line.UsageError, match="--jugde"):
        parsed(["score", "rows.jsonl", "--jugde", "judge.json"])
