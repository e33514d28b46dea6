"""Six people's first hours, as pages say them: docs/paths.yaml."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from loopback import Server
from pages_run import as_reader, run, tutorials

from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection, language_model

ROOT = Path(__file__).resolve().parents[1]
PATHS: dict[str, Any] = yaml.safe_load(
    (ROOT / "docs/paths.yaml").read_text(encoding="utf-8")
)


def give(name: str, server: Server) -> None:
    """Write a file that a person has."""
    replies = [
        json.loads(line)
        for line in (ROOT / "datasets/demo/replies.jsonl")
        .read_text("utf-8")
        .splitlines()
    ]
    match name:
        case "labels.csv" | "outputs.jsonl":
            tutorials.give(Path())
        case "rows.jsonl":
            tutorials.give(Path())
            shutil.copy("outputs.jsonl", "rows.jsonl")
        case "rated.jsonl" | "unrated.jsonl":
            lines = []
            for number, row in enumerate(replies):
                row["gpt4"] = row.pop("verdict")["score"]
                row["other"] = len(row["output"]) % 7
                row["language"] = ("en", "de")[number % 2]
                row["score"] = 1 + 3 * (row.pop("label") == "pass") + number % 2
                if name == "unrated.jsonl":
                    del row["score"]
                lines.append(
                    json.dumps(
                        {
                            k: v
                            for k, v in row.items()
                            if k not in ("judge", "asked", "seen")
                        }
                    )
                )
            Path(name).write_text("\n".join(lines), encoding="utf-8")
        case "judge.json":
            lm = language_model(
                "openai/gpt-4o-mini", connection=Connection(server.base)
            )
            Judge(ActiveCritic("vanilla"), lm=lm).save(name)
        case _:
            raise AssertionError(f"no one has {name}")


@pytest.fixture
def place(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return as_reader(tmp_path / "path", server, monkeypatch)


def test_there_are_six_people_and_what_they_run_stands_on_the_pages() -> None:
    assert len(PATHS) == 6
    for person, path in PATHS.items():
        for step in path["steps"]:
            text = (ROOT / step["page"]).read_text(encoding="utf-8")
            found = [one.text for one in tutorials.steps(text)]
            for wanted in step.get("run", ()):
                assert any(one.startswith(wanted["command"]) for one in found), (
                    person,
                    wanted["command"],
                )
            for part in step.get("python", ()):
                assert part in text
        if "tests" in path:
            assert (ROOT / path["tests"]).is_file()


@pytest.mark.slow
@pytest.mark.parametrize("person", PATHS)
def test_a_person_gets_what_the_pages_say(
    person: str, place: Path, server: Server, cli: Any
) -> None:
    path = PATHS[person]
    for name in path["with"]:
        give(name, server)
    for step in path["steps"]:
        steps = list(tutorials.steps((ROOT / step["page"]).read_text("utf-8")))
        for one in steps:
            if one.kind == "file":
                Path(one.title).write_text(one.text, encoding="utf-8")
        for part in step.get("python", ()):
            for one in steps:
                if one.kind == "python" and part in one.text:
                    exec(compile(in_reach(one.text), step["page"], "exec"), {})
        for wanted in step.get("run", ()):
            one = next(s for s in steps if s.text.startswith(wanted["command"]))
            code, said = run(shlex.split(in_reach(one.text), comments=True), cli)
            assert code == wanted.get("code", 0), f"{one.text}\n{said[-3000:]}"
            flat = " ".join(said.split())
            for part in wanted.get("says", ()):
                assert str(part) in flat, (
                    f"{one.text}: {part!r} is not in\n{said[-3000:]}"
                )
            for name in wanted.get("writes", ()):
                assert Path(name).is_file(), f"{one.text}: {name} was not written"


def in_reach(text: str) -> str:
    """The command or code with the stand-ins of models."""
    for name, other in tutorials.INSTEAD.items():
        text = text.replace(name, other)
    return text
