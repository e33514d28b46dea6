"""Which hosts every command asks for: those that SECURITY.md lists, and no other."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from patience import HANG

from judgesmith.programs.models.files import installed, models_dir

pytestmark = pytest.mark.slow

#: Runs in every Python that a command starts: which host is looked up, or connected to.
HEARD = """
import os, sys
def heard(event, given):
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = given[0]
    elif event in ("socket.connect", "socket.sendto") and isinstance(given[1], tuple):
        host = given[1][0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else str(host)
    with open(os.environ["HOSTS_HEARD"], "a") as file:
        file.write(host + "\\n")
sys.addaudithook(heard)
"""
HERE = {"127.0.0.1", "localhost", "::1", "None", "", "0.0.0.0", "::"}
#: Of variables that would hide where a command goes, or send it elsewhere.
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HF_ENDPOINT")
LISTED = set(
    re.findall(
        r"`([a-z]+(?:\.[a-z]+)*\.(?:co|com|org|io|ai|net))`",
        (Path(__file__).parents[1] / "SECURITY.md").read_text(encoding="utf-8"),
    )
)


@pytest.fixture
def asked_by(tmp_path: Path) -> Callable[..., tuple[set[str], int, str]]:
    """asked_by("score", …): the hosts beyond this machine that it asked for, its exit code, and what it complained."""
    hook, heard, home = tmp_path / "hook", tmp_path / "heard", tmp_path / "home"
    hook.mkdir()
    home.mkdir()
    (hook / "sitecustomize.py").write_text(HEARD)
    env = {
        name: value
        for name, value in os.environ.items()
        if name.lower() not in PROXIES
        and not name.startswith(("PIP_", "CI", "JUDGESMITH_"))
    }
    env |= {
        "PYTHONPATH": str(hook),
        "HOSTS_HEARD": str(heard),
        "HOME": str(home),
        "OPENAI_API_KEY": "unused",
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "JUDGESMITH_CACHE": str(tmp_path / "calls.sqlite"),
        "JUDGESMITH_THREADS": "1",
    }

    def run(*arguments: object, **more: str) -> tuple[set[str], int, str]:
        heard.write_text("")
        done = subprocess.run(
            [sys.executable, "-m", "judgesmith.cli.main", *map(str, arguments)],
            env=env | more,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=HANG,
        )
        assert not [path for path in home.iterdir() if path.name[0] != "."]
        hosts = {*heard.read_text().split()} - HERE
        return hosts, done.returncode, done.stderr[-500:]

    return run


def commands(at: str, folder: Path, rows: Any, judge: Path) -> dict[str, list[Any]]:
    """What each command is run with. at: the address of a model on this machine."""
    lm = ("--lm", "openai/fake", "--api-base", at)
    labelled, texts = rows(24), rows(6, "texts.jsonl", scored=False, prefix="new ")
    scored, scale = folder / "scored.jsonl", ("--scale", 0, 100)
    two = folder / "two.jsonl"
    versions = [
        {
            "source": f"Question {n // 2}",
            "output": f"Answer {n}",
            "system": ("old", "new")[n % 2],
            "score": 1 + 3 * (n % 2) + n % 3 / 2,
            "judge_score": 1 + 3 * (n % 2) + n % 5 / 4,
        }
        for n in range(60)
    ]
    two.write_text("".join(json.dumps(row) + "\n" for row in versions))
    study = ("--heldout", 8, "--seeds", 1, "-o", folder / "study")
    return {
        "demo": ["demo", "-o", folder / "demo.jsonl"],
        "new": ["new", "It is short.", *lm, "-o", folder / "new.json"],
        "label": ["label", texts, "--store", folder / "s.sqlite", "--export-only"],
        "compile": [
            "compile",
            labelled,
            *lm,
            *scale,
            "--candidates",
            2,
            "-o",
            folder / "made.json",
        ],
        "score": ["score", labelled, "--judge", judge, "--api-base", at, "-o", scored],
        "check": ["check", labelled, "--judge", judge, "--api-base", at],
        "evaluate": ["evaluate", labelled, "--judge", judge, "--api-base", at],
        "report": ["report", scored, "-o", folder / "report.html"],
        "show": ["show", judge],
        "list": ["list", "models"],
        "get": ["get", "--help"],
        "mcp": ["mcp"],  # ends with its input
        "serve": ["serve", folder / "missing.json"],
        "watch": ["watch", texts, "--judge", judge, "--api-base", at],
        "discern": ["discern", judge, texts, "--api-base", at, "--check", "length"],
        "suggest": ["suggest", scored],
        "estimate": ["estimate", scored, "--human", labelled],
        "compare": ["compare", two],
        "sync": ["sync", "phoenix", "nothing"],
        "synthesize": ["synthesize", labelled, "--judge", judge, "--dry-run"],
        "distill": ["distill", labelled, "--dry-run"],
        "study.optimizers": [
            "study",
            "optimizers",
            labelled,
            *lm,
            *study,
            "--arm",
            "none",
        ],
        "study.ablation": ["study", "ablation", labelled, *lm, *study, "--dry-run"],
        "study.labels": ["study", "labels", labelled, *lm, *study, "--dry-run"],
        "study.models": ["study", "models", labelled, *lm, *study, "--dry-run"],
        "study.paper": ["study", "paper", "--help"],
        "study.control": ["study", "control", "--help"],
        "study.replay": ["study", "replay", "--help"],
        "study.experience": ["study", "experience", "--help"],
        "study.efficiency": ["study", "efficiency", "--help"],
    }


#: Commands that end with another code than 0 here.
CODES = {"serve": 2, "sync": 2}


def test_no_command_asks_for_a_host_by_itself(
    asked_by: Any, server: Any, tmp_path: Path, rows_file: Any, judge_file: Path
) -> None:
    made = commands(server.base, tmp_path, rows_file, judge_file)
    ours = {
        point.name
        for point in entry_points(group="judgesmith.commands")
        if point.value.startswith("judgesmith.") and point.name != "study"
    }
    assert set(made) >= ours  # a new command has to be listed
    seen = {name: asked_by(*arguments) for name, arguments in made.items()}
    assert [
        (name, told) for name, told in seen.items() if told[1] != CODES.get(name, 0)
    ] == []
    assert {name: hosts for name, (hosts, *_) in seen.items() if hosts} == {}


def test_hosts_that_are_asked_for_are_those_of_the_list(
    asked_by: Any, tmp_path: Path
) -> None:
    keys = {"LANGFUSE_PUBLIC_KEY": "pk-lf-1", "LANGFUSE_SECRET_KEY": "sk-lf-1"}
    empty = {
        "JUDGESMITH_MODELS_DIR": str(tmp_path / "none"),
        "XDG_CACHE_HOME": str(tmp_path / "none"),
        "JUDGESMITH_DATA_CACHE": str(tmp_path / "none"),
    }
    seen = {
        "model": asked_by("get", "local/smollm2-135m", **empty)[0],
        "set": asked_by("get", "bench/wiki_da", "--yes", **empty)[0],
        "langfuse": asked_by("sync", "langfuse", "p", **keys)[0],
    }
    assert seen["model"] == {"huggingface.co"}
    assert seen["set"] == {"raw.githubusercontent.com"}
    assert seen["langfuse"] == {"cloud.langfuse.com"}
    assert set.union(*seen.values()) == LISTED


@pytest.mark.skipif(find_spec("openvino") is None, reason="judgesmith[local]")
def test_reading_by_openvino_reports_to_nobody(tmp_path: Path) -> None:
    heard, home = tmp_path / "heard", tmp_path / "home"
    heard.touch()
    home.mkdir()
    (tmp_path / "sitecustomize.py").write_text(HEARD)
    code = (
        "from judgesmith.programs.readings.bindings.graph import openvino, precision\n"
        "precision(), openvino().opset13, __import__('time').sleep(3)"
    )
    env = {name: value for name, value in os.environ.items() if name != "CI"}
    env |= {"HOME": str(home), "PYTHONPATH": str(tmp_path), "HOSTS_HEARD": str(heard)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=HANG)
    assert heard.read_text() == ""
    assert [*home.iterdir()] == []


@pytest.mark.model
@pytest.mark.skipif(not installed("smollm2-135m"), reason="no local model here")
def test_a_model_of_this_machine_reports_to_nobody(
    asked_by: Any, tmp_path: Path, rows_file: Any
) -> None:
    judge, models = tmp_path / "own.json", {"JUDGESMITH_MODELS": str(models_dir())}
    texts = rows_file(3, "texts.jsonl", scored=False)
    made = ("new", "It is short.", "--lm", "local/smollm2-135m", "--method", "direct")
    assert asked_by(*made, "-o", judge, **models)[:2] == (set(), 0)
    assert asked_by("score", texts, "--judge", judge, **models)[:2] == (set(), 0)


def test_the_hook_hears(asked_by: Any) -> None:
    """A host that a command does ask for is heard."""
    hosts, code, _ = asked_by("sync", "phoenix", "p", PHOENIX_ENDPOINT="http://a.test")
    assert (hosts, code) == ({"a.test"}, 2)
