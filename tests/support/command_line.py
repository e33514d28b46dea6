"""The command line in this process or in one of its own, against the server on loopback."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from json_lines import write
from loopback import Server, running_server
from patience import HANG

from judgesmith.cli import main as command_line
from judgesmith.datasets.records import Labels
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.testing import fake as model
from judgesmith.testing.scripted import MakeScripted, scripted_models


@pytest.fixture
def server() -> Iterator[Server]:
    with running_server() as made:
        yield made


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has its own cache of calls, and no model or server from the environment."""
    return model.own_environment(monkeypatch, tmp_path)


@pytest.fixture
def labels_of() -> Callable[..., Labels]:
    """labels_of(documents, per_document, score): scores by row number, on 0..100."""
    return model.make_labels


@pytest.fixture
def fake() -> Any:
    """The names of the model behind the server, for tests that make answers of their own."""
    return model


@pytest.fixture
def scripted() -> Iterator[MakeScripted]:
    """Makes (model, transport) from a script; a list that was not used up fails the test."""
    with scripted_models() as make:
        yield make


#: Lines of a log, and those that may follow a complaint.
PROGRESS = re.compile(r"at most |\[")
SEVERAL = re.compile(
    r"\S+, row \d+|\.\.\. and \d+ more problems$|\(rows are counted from 1"
)


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON value that it must be."""
        return json.loads(self.out)

    @property
    def said(self) -> str:
        """Standard output of a command that succeeded."""
        assert self.code == 0, self.err
        return self.out

    @property
    def told(self) -> Any:
        """The JSON of a command that succeeded."""
        return json.loads(self.said)

    def refused(self, *parts: str) -> None:
        """That the command was refused, and said all of this."""
        assert self.code == 2, self.out
        assert all(part in self.err for part in parts), self.err

    def come_again(self, *parts: str) -> None:
        """That the same command may succeed later, and that it said all of this."""
        assert self.code == 75, self.out
        assert all(part in self.err for part in parts), self.err

    def refused_at_once(self, *parts: str) -> None:
        """Assert that it was refused in one line with all of these parts, and printed nothing else.

        More lines of its kind may follow if a file has several problems.
        """
        assert (self.code, self.out) == (2, ""), self.err
        line, *others = [
            text for text in self.err.splitlines() if not PROGRESS.match(text)
        ]
        assert all(map(SEVERAL.match, others)), others
        assert all(part in line for part in parts), line


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """cli("score", rows, …): the command in this process, through the program's own entry point."""

    def run(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["judgesmith", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            command_line.main()
        said = capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        return Done(stopped.value.code, said.out, said.err)

    return run


@pytest.fixture
def started() -> list[subprocess.Popen[str]]:
    """The processes that `spawn` started in this test."""
    return []


@pytest.fixture
def spawn(
    started: list[subprocess.Popen[str]],
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """spawn("compile", …): the command in a process of its own, ended with the test."""

    def run(*arguments: object, code: str | None = None) -> subprocess.Popen[str]:
        what = ["-c", code] if code is not None else ["-m", "judgesmith.cli.main"]
        process = subprocess.Popen(
            [sys.executable, *what, *map(str, arguments)],
            # A test run in the background of a shell ignores Ctrl-C, and so would its children.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=HANG)


@pytest.fixture
def until(started: list[subprocess.Popen[str]]) -> Callable[[Callable[[], bool]], None]:
    """until(condition): wait for it, as long as the process that was started last runs."""

    def wait(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + HANG
        while True:
            over = time.monotonic() > end or (
                bool(started) and started[-1].poll() is not None
            )
            if condition():
                return
            assert not over, "it did not come to pass"
            time.sleep(0.02)

    return wait


@pytest.fixture
def rows_file(tmp_path: Path) -> Callable[..., Path]:
    """rows_file(40): a .jsonl or .csv file of rows with ids r000…, four to a document, and a score each.

    With a prefix they are other rows, none of which nearly equals one without.
    """

    def make(
        rows: int, name: str = "rows.jsonl", *, scored: bool = True, prefix: str = ""
    ) -> Path:
        made = []
        for n, row in enumerate(
            model.make_rows(-(-rows // 4), 4, lambda n: n * 37 % 101)[:rows]
        ):
            output = (
                prefix + " ".join(reversed(row.output.split()))
                if prefix
                else row.output
            )
            record = {
                "id": row.id,
                "source": prefix + row.source,
                "output": output,
                "doc_id": prefix + row.doc_id,
            }
            made.append(record | ({"score": n * 37 % 101} if scored else {}))
        path = tmp_path / name
        if path.suffix != ".csv":
            return write(path, made)
        pd.DataFrame(made).to_csv(path, index=False)
        return path

    return make


@pytest.fixture
def judge_file(tmp_path: Path, server: Any) -> Path:
    """A saved judge for the server's model: zero-shot, a number said after an explanation."""
    lm = language_model("openai/fake", connection=Connection(server.base))
    path = tmp_path / "judge.json"
    Judge(ActiveCritic("vanilla", explain="before", reading="said"), lm=lm).save(path)
    return path


@pytest.fixture
def compile_(cli: Any, server: Any, tmp_path: Path) -> Callable[..., Any]:
    """compile_(labels, …): the command with the loopback server as its model."""

    def run(labels: Path, *arguments: object) -> Any:
        return cli(
            "compile",
            labels,
            "--lm",
            "openai/fake",
            "--api-base",
            server.base,
            "--scale",
            0,
            100,
            "-o",
            tmp_path / "made.json",
            "--candidates",
            2,
            *arguments,
        )

    return run
