"""`judgesmith list` and `judgesmith get`."""

import json
from pathlib import Path
from typing import Any

import pytest
from json_lines import write
from misbehaving_server import Server
from origins import nothing_here, origins
from typer.testing import CliRunner, Result

from judgesmith.cli.main import app
from judgesmith.datasets.benchmarks import catalog as benchmarks
from judgesmith.datasets.benchmarks.catalog import list_benchmarks
from judgesmith.datasets.perturbations.registry import perturbations
from judgesmith.errors import LabelsError, OptionError
from judgesmith.optimizers.registry import optimizers
from judgesmith.optimizers.search import through_dspy
from judgesmith.parts import Options
from judgesmith.programs.aspects import aspects
from judgesmith.programs.models.files import weights_of
from judgesmith.programs.registry import methods, metrics
from judgesmith.running import console

__all__ = ["nothing_here", "origins"]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.mkdir()
    rows = [
        {"id": str(n), "source": "s", "output": f"o{n}", "scores": {"overall": -n}}
        for n in range(10)
    ]
    write(path / "mqm_ted_ende.jsonl", rows)
    monkeypatch.setenv("JUDGESMITH_DATA", str(path))
    return path


def run(*args: object, answer: str | None = None) -> Result:
    return CliRunner().invoke(app, [*map(str, args)], input=answer)


def words(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


def shown(result: Result) -> str:
    assert result.exit_code == 0, result.exception
    return words(result.stdout)


def letters(text: str) -> str:
    """Without blanks and lines: what a table says, wherever it was folded."""
    return "".join(text.replace("│", " ").split())


def test_list_data_shows_every_set_and_where_it_is(folder: Path):
    result = run("list", "data")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    for card in list_benchmarks():
        assert sum(card.name in line.split() for line in lines) == 1
    mine = next(line for line in lines if "bench/mqm_ted_ende" in line.split())
    assert mine.split() == ["bench/mqm_ted_ende", "translation", "10/980", "folder"]
    assert (
        next(line for line in lines if "bench/summeval" in line.split()).split()[-1]
        == "unavailable"
    )
    assert words(
        next(line for line in lines if "bench/qags_xsum" in line.split())
    ).endswith("fetchable")


def test_list_data_as_json(folder: Path):
    sets = {
        item["name"]: item
        for item in json.loads(run("list", "data", "--json").stdout)["sets"]
    }
    assert len(sets) == 20
    mine = sets["bench/mqm_ted_ende"]
    assert (mine["rows"], mine["rows_here"], mine["where"]) == (980, 10, "folder")
    assert mine["path"] == str(folder / "mqm_ted_ende.jsonl")
    other = sets["bench/wiki_da"]
    assert (other["where"], other["path"], other["restriction"]) == (
        "fetchable",
        None,
        "non-commercial",
    )


def test_list_data_prints_the_whole_card(folder: Path):
    card = benchmarks.benchmark("wiki_da")
    assert card.origin is not None
    result = run("list", "data", "bench/wiki_da")
    assert result.exit_code == 0
    said = letters(result.stdout)
    for part in (
        card.title,
        card.task,
        "rows 600",
        "documents 302",
        "systems 6",
        "simplicity: 0 to 100",
        card.paper_url,
        card.aggregation,
        "CC BY-NC-SA 4.0",
        "non-commercial",
        card.origin.commit,
        card.origin.sha256,
        "not here; `judgesmith get bench/NAME` brings it",
        *card.quirks,
    ):
        assert letters(part) in said
    assert "rows here 10" in words(run("list", "data", "mqm_ted_ende").stdout)
    assert "accuracy: no end to 0" in words(
        run("list", "data", "rotowire_accuracy").stdout
    )


def test_a_card_as_json():
    card = json.loads(shown(run("list", "data", "rotowire_accuracy", "--json")))
    assert card["aspects"]["accuracy"] == [None, 0.0]
    assert card["unfetchable"]
    assert [card[name] for name in ("where", "path", "rows_here", "origin")] == [
        "unavailable",
        None,
        None,
        None,
    ]


def test_get_shows_the_licence_first_and_takes_no_for_an_answer(
    origins: Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(console, "asks", lambda: True)
    result = run("get", "sfres", answer="n\n")
    assert result.exit_code == 1
    assert words(result.stderr).startswith("bench/sfres: MIT. Copy of UniEval")
    assert "nothing was fetched" in result.stderr
    assert benchmarks.locate("sfres").kind == "fetchable"
    result = run("get", "sfres", answer="y\n")
    assert result.exit_code == 0
    assert benchmarks.locate("sfres").kind == "cache"
    said = f"bench/sfres: fetched, 12 of 1,181 rows, {benchmarks.resolve('sfres')}"
    assert (
        words(result.stdout).removeprefix("y ") == said
    )  # the runner repeats the answer
    assert "CC BY-NC-SA 4.0 [NON-COMMERCIAL]" in words(
        run("get", "wiki_da", answer="n\n").stderr
    )


def test_get_without_anybody_to_ask_needs_yes_and_checks_all_names_before_it_fetches_any(
    origins: Server,
):
    result = run("get", "sfres")
    assert isinstance(result.exception, OptionError)
    assert "pass --yes" in str(result.exception)
    for wrong, why in (
        ("summeval", "cannot be fetched"),
        ("nothing", "there is no such set"),
    ):
        result = run("get", "sfres", wrong, "--yes")
        assert isinstance(result.exception, LabelsError)
        assert why in str(result.exception)
    assert benchmarks.locate("sfres").kind == "fetchable"


def test_get_several_and_again_as_json(origins: Server):
    result = run("get", "bench/sfres", "sfhot", "sfres", "--yes", "--json")
    assert result.exit_code == 0
    done = json.loads(result.stdout)["sets"]
    shown = [(item["name"], item["fetched"], item["rows_here"]) for item in done]
    assert shown == [("bench/sfres", True, 12), ("bench/sfhot", True, 12)]
    again = run("get", "sfres", "--json")  # nothing to ask, nothing to fetch
    assert [item["fetched"] for item in json.loads(again.stdout)["sets"]] == [False]


def test_get_of_a_set_that_is_in_the_folder_says_so(folder: Path):
    said = f"bench/mqm_ted_ende: here already, 10 of 980 rows, {folder / 'mqm_ted_ende.jsonl'}"
    assert shown(run("get", "mqm_ted_ende")) == said


# -- aspects --


def test_list_aspects_shows_all_tasks_with_their_aspects() -> None:
    said = shown(run("list", "aspects"))
    for task in aspects().tasks.values():
        assert f"{task.name}: " in said
        assert all(name in said for name in task.aspects)
    assert "(more is worse)" in said
    said = shown(run("list", "aspects", "qa"))  # one task, by an alias
    assert "question-answering: " in said
    assert "conciseness" in said
    assert "simplicity" not in said
    said = shown(run("list", "aspects", "simplification/meaning"))  # one in full
    aspect = aspects().find("meaning", "simplification")
    for part in (aspect.definition, aspect.low, aspect.high, *aspect.leave_aside):
        assert part in said


def test_json_has_everything() -> None:
    assert "did you mean 'engagement'" in str(
        run("list", "aspects", "engagment").exception
    )
    data = json.loads(shown(run("list", "aspects", "--json")))
    assert {task["name"]: len(task["aspects"]) for task in data["tasks"]} == {
        name: len(task.aspects) for name, task in aspects().tasks.items()
    }
    one = json.loads(shown(run("list", "aspects", "hallucination", "--json")))
    assert one["aspect"]["negative"] is True
    assert one["task"]["name"] == "general"
    assert [
        task["name"]
        for task in json.loads(shown(run("list", "aspects", "story", "--json")))[
            "tasks"
        ]
    ] == ["story"]


# -- parts and their options --


@pytest.mark.parametrize(
    ("what", "registry"),
    [
        ("methods", methods),
        ("optimizers", optimizers),
        ("perturbations", perturbations),
        ("metrics", metrics),
    ],
)
def test_parts_are_listed(
    what: str, registry: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setitem(registry.broken, "shaky", "ImportError: no module named shaky")
    listed = json.loads(run("list", what, "--json").stdout)
    others = [f"dspy:{name}" for name in through_dspy.names()]
    names = [*registry.names(), *(others if what == "optimizers" else ())]
    assert [part["name"] for part in listed["parts"]] == names
    assert listed["broken"] == {"shaky": "ImportError: no module named shaky"}
    assert "shaky" in run("list", what).stderr
    for part in listed["parts"]:
        declared = list(
            getattr(registry.get(part["name"]), "Options", Options).model_fields
        )
        assert [option["name"] for option in part["options"]] == declared
        assert all(option["help"] and option["type"] for option in part["options"])
    first = listed["parts"][0]["name"]
    assert json.loads(run("list", what, first, "--json").stdout) == listed["parts"][0]
    assert first in run("list", what, first).stdout
    assert "unknown" in str(run("list", what, "nonsense").exception)


def test_list_models_says_what_their_weights_are() -> None:
    models = {
        one["name"]: one
        for one in json.loads(run("list", "models", "--json").stdout)["models"]
    }
    assert "Qwen2.5-Coder" in models["local/qwen2.5-0.5b"]["about"]
    assert "Qwen2.5-Coder-0.5B-Instruct" in run("list", "models").stdout
    assert (
        weights_of("local/qwen2.5-1.5b")
        == "local/qwen2.5-1.5b (Qwen2.5-Coder-1.5B-Instruct Q4_K_M)"
    )
    assert weights_of("local/other") == "local/other"
