"""`judgesmith references`, against a server on loopback."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from judgesmith.cli.main import app
from judgesmith.errors import OptionError
from judgesmith.programs.comparing import pairwise
from judgesmith.programs.models.lm import Connection, language_model


@pytest.fixture(autouse=True)
def own_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("JUDGESMITH_REFERENCES", str(tmp_path / "references.sqlite"))
    monkeypatch.setenv("JUDGESMITH_CACHE", str(tmp_path / "calls.sqlite"))
    return tmp_path


class Loopback:
    """Writes "Text number n." and prefers what stands second; counts what it is asked."""

    def __init__(self) -> None:
        self.writings = self.comparisons = 0
        self.broken = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                body = json.dumps(outer.answer(asked)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                return None

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        last = asked["messages"][-1]["content"]
        choices: list[tuple[str, float]] = []
        if "2 + 2 =" in last:
            text, choices = "4", [("4", -0.1), ("5", -3.0)]
        elif "Aim at about" in last:
            self.writings += 1
            text = "..." if self.broken else f"Text number {self.writings}."
        else:
            self.comparisons += 1
            text, choices = "Better", [("Better", -0.2), ("Worse", -2.0), (" similar", -3.0)]
        top = [{"token": t, "logprob": p} for t, p in choices]
        logprobs = {"content": [{"token": text, "logprob": -0.1, "top_logprobs": top}]} if top else None
        return {
            "choices": [{"message": {"content": text}, "logprobs": logprobs, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 3},
        }


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    made = Loopback()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    made = [{"source": f"Document {d}.", "output": "Four words of output."} for d in (1, 2) for _ in range(3)]
    path.write_text("".join(json.dumps(r) + "\n" for r in made))
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["references", *map(str, arguments)])


def words(result: Result) -> str:
    assert result.exit_code == 0, result.exception
    return " ".join(result.stdout.split())


def build(rows: Path, loopback: Loopback, *more: object) -> Result:
    return run("build", rows, "--lm", "openai/fake", "--api-base", loopback.base, *more)


def test_build_writes_once_and_shows_the_hit_rate(rows: Path, loopback: Loopback) -> None:
    first = json.loads(words(build(rows, loopback, "--json")))
    assert (first["documents"], first["written"], first["found"], first["calls"]) == (2, 2, 0, 10)
    assert loopback.writings == 10
    assert "2 documents: 2 had references (100%), 0 were written, 0 failed. 0 calls" in words(build(rows, loopback))
    assert loopback.writings == 10


def test_a_judge_of_the_same_settings_finds_them(rows: Path, loopback: Loopback) -> None:
    said = words(build(rows, loopback, "--words", "auto", "--aspect", "summarization/coherence", "--levels", "3"))
    assert "They are found by judges with words=4." in said
    lm = language_model("openai/fake", connection=Connection(api_base=loopback.base))
    judge = pairwise.PairwiseDirectScorer("summarization/coherence", levels=3, words=4, lm=lm)
    verdict = judge.score("Document 1.", "Mine.")
    # each level alike: (e^-.2 − e^-2)/(e^-.2 + e^-2 + e^-3) = .6834/1.0038… → 50·(1 + .6813)
    assert verdict.percent == pytest.approx(50 * (1 + 0.683395 / 1.003853), abs=1e-3)
    assert (loopback.writings, loopback.comparisons) == (6, 3)
    assert judge.score("Document 1.", "Mine.").usage.calls == 0  # a second run costs nothing
    assert (loopback.writings, loopback.comparisons) == (6, 3)


def test_list_and_one_document_in_full(rows: Path, loopback: Loopback) -> None:
    assert "no references yet" in words(run("list"))
    build(rows, loopback)
    (group,) = json.loads(words(run("list", "--json")))["groups"]
    assert (group["writer"], group["aspect"], group["levels"], group["documents"]) == ("openai/fake", "overall", 5, 2)
    assert "openai/fake overall 5" in words(run("list"))
    store = references_commands_store()
    key = next(store.entries())[0]
    assert "1/5 Text number" in words(run("list", "--document", key.document[:10]))
    (entry,) = json.loads(words(run("list", "--document", key.document, "--json")))["references"]
    assert list(entry["outputs"]) == ["1", "2", "3", "4", "5"]
    missing = run("list", "--document", "zz")
    assert isinstance(missing.exception, OptionError)


def references_commands_store() -> Any:
    from judgesmith.programs.comparing.references import reference_store

    return reference_store()


def test_export_and_import(rows: Path, loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(rows, loopback)
    path = tmp_path / "shared.jsonl"
    assert words(run("export", path)).startswith("2 documents' references written")
    assert "Document 1" not in path.read_text()  # only the hash of the document
    monkeypatch.setenv("JUDGESMITH_REFERENCES", str(tmp_path / "other.sqlite"))
    assert "2 documents' references are new, 0 were there" in words(run("import", path))
    assert "0 documents' references are new, 2 were there and replaced" in words(run("import", path, "--replace"))
    assert json.loads(words(build(rows, loopback, "--json")))["found"] == 2
    path.write_text("{}\n")
    assert isinstance(run("import", path).exception, OptionError)


def test_a_text_from_a_file_is_shown_without_obeying_its_markup(tmp_path: Path) -> None:
    line = {
        "format": "judgesmith.references/1", "document": "a" * 64, "aspect": "[red]a", "prompt": "b" * 12, "levels": 2,
        "writer": "[/nope]w", "outputs": {"1": "[red]x[/nope]\u001b[2J", "2": "Good."}, "left_out": {},
    }  # fmt: skip
    (tmp_path / "x.jsonl").write_text(json.dumps(line) + "\n")
    run("import", tmp_path / "x.jsonl")
    shown = words(run("list")) + words(run("list", "--document", "aaaa"))
    assert "[red]x[/nope]" in shown and "[/nope]w" in shown
    assert "\x1b[2J" not in shown


def test_documents_that_fail_are_said(rows: Path, loopback: Loopback) -> None:
    loopback.broken = True
    result = build(rows, loopback)
    assert result.exit_code == 1
    said = " ".join(result.stdout.split())
    assert "2 failed" in said
    assert "could not write reference 1 of 5: it is empty" in said


@pytest.mark.parametrize("more", [("--words", "many"), ("--aspect", "nonsense"), ("--columns", "source")])
def test_wrong_options_are_errors_in_words(rows: Path, loopback: Loopback, more: tuple[str, ...]) -> None:
    assert isinstance(build(rows, loopback, *more).exception, OptionError)


def test_rows_without_a_source_are_refused(tmp_path: Path, loopback: Loopback) -> None:
    path = tmp_path / "bare.jsonl"
    path.write_text('{"output": "x"}\n')
    result = build(path, loopback)
    assert isinstance(result.exception, OptionError)
    assert "no row has a source" in str(result.exception)


def test_a_judge_of_another_kind_needs_none(rows: Path, loopback: Loopback, tmp_path: Path) -> None:
    from judgesmith.programs.active_critic.critic import ActiveCritic

    ActiveCritic("vanilla", lm=language_model("openai/fake", connection=Connection(loopback.base))).save(
        tmp_path / "j.json"
    )
    result = build(rows, loopback, "--judge", tmp_path / "j.json")
    assert isinstance(result.exception, OptionError)
    assert "active-critic, which needs no references" in str(result.exception)
