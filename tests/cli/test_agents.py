"""The four jobs of SKILL.md, done by a script that reads nothing else; and the schemas of what `--json` prints."""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from pages_run import as_reader, tutorials
from scripts import script

from judgesmith.agreement.comparison import Verdict
from judgesmith.cli.main import EXIT_CODES
from judgesmith.cli.outputs import OUTPUTS, CompareOutput, schema

ROOT = Path(__file__).resolve().parents[2]
SKILL = (ROOT / "SKILL.md").read_text(encoding="utf-8")
JOBS = ("Check", "Compare", "Label", "Compile")


def section(job: str) -> str:
    (found,) = re.findall(rf"^## {job}:.*?(?=^## )", SKILL, re.MULTILINE | re.DOTALL)
    return found


def commands(job: str) -> list[list[str]]:
    lines = re.findall(r"^\$ (judgesmith .+)$", section(job), re.MULTILINE)
    return [shlex.split(line) for line in lines]


def keys(job: str) -> Iterator[str]:
    """The paths that a table of a section tells an agent to read."""
    for cell in re.findall(r"^\| (`.+?) \|", section(job), re.MULTILINE):
        yield from re.findall(r"`([a-z_][\w.]*)`", cell)


def at(data: Any, path: str) -> Any:
    for step in path.split("."):
        data = data[int(step)] if step.isdigit() else data[step]
    return data


@pytest.fixture
def place(
    server: Any, cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """An agent's folder: the demo's rows, some labels, and an API."""
    as_reader(tmp_path, server, monkeypatch)
    shutil.copy(ROOT / "datasets/demo/replies.jsonl", "qwen.jsonl")
    shutil.copy(ROOT / "datasets/demo/labels.jsonl", "labels.jsonl")
    return tmp_path


@pytest.mark.parametrize("job", JOBS)
def test_an_agent_does_the_job_from_the_skill_alone(
    job: str, cli: Any, place: Path
) -> None:
    read = set[str]()
    wanted = set(keys(job))
    assert len(wanted) >= 3
    for words in commands(job):
        name = " ".join(
            word for word in words[1:] if word in (job.lower(), "--dry-run")
        )
        if name == "label":
            tutorials.person(words)  # who rates, with a browser
            words = [*words, "--export-only"]
        done = cli(*words[1:])
        assert done.code in EXIT_CODES, done.err
        assert done.code != 2, done.err
        told = json.loads(done.out)
        jsonschema.validate(told, schema(name))
        for path in wanted:
            try:
                at(told, path)
            except (KeyError, IndexError, TypeError):
                continue
            read.add(path)
    assert read == wanted


def test_the_skill_has_the_exit_codes() -> None:
    table = SKILL.partition("## Exit codes")[2]
    for code, meaning in EXIT_CODES.items():
        assert re.search(rf"\b{code}\b", table)
        if code < 75:
            assert meaning in table


def test_every_schema_is_one_and_is_printed(cli: Any) -> None:
    for name in cli("list", "schemas", "--json").json["schemas"]:
        told = cli("list", "schemas", name).json
        jsonschema.Draft202012Validator.check_schema(told)
        assert told == json.loads(json.dumps(schema(name)))
    assert set(get_args(Verdict)) == set(
        get_args(CompareOutput.model_fields["verdict"].annotation)
    )
    cli("list", "schemas", "chek").refused_at_once("did you mean 'check'")


def test_a_scored_row_and_the_report_keep_their_schemas(cli: Any, place: Path) -> None:
    for line in Path("qwen.jsonl").read_text(encoding="utf-8").splitlines():
        jsonschema.validate(json.loads(line), schema("row"))
    jsonschema.validate(cli("report", "qwen.jsonl", "--json").json, schema("report"))
    jsonschema.validate(cli("demo", "--json").json, schema("demo"))


def test_a_run_of_score_keeps_its_schema(
    cli: Any, server: Any, rows_file: Any, judge_file: Path, place: Path
) -> None:
    words = ("score", rows_file(8), "--judge", judge_file, "--api-base", server.base)
    jsonschema.validate(cli(*words, "--json").json, schema("score"))


def test_every_front_command_with_json_has_a_schema() -> None:
    assert {"demo", "check", "compare", "compile", "score", "label", "report"} <= set(
        OUTPUTS
    )


@pytest.mark.text
def test_the_list_of_pages_for_models_is_of_the_pages() -> None:
    llms = script("llms")
    assert llms.PAGE.read_text(encoding="utf-8") == llms.listed()
