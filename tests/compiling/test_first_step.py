"""With a model that costs money, the model alone is measured before a search is paid for."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from judgesmith.running import console

PAID = "openai/gpt-4o-mini"  # its price is known


@pytest.fixture
def paid(cli: Any, server: Any, rows_file: Any, tmp_path: Path) -> Any:
    """paid(OPTIONS): compile 40 rows with a model that costs money."""
    server.answer = lambda ask: f"Score: {len(ask.last) % 60}"
    rows = rows_file(40)
    where = ("--api-base", server.base, "-o", tmp_path / "judge.json")
    return lambda *more: cli("compile", rows, "--lm", PAID, *where, *more)


def test_a_script_asks_a_row_once_and_stops(
    paid: Any, server: Any, tmp_path: Path
) -> None:
    ran = paid()
    assert ran.code == 3
    assert "calls, about $" in ran.err
    assert "--yes" in ran.err
    sent = len(server.answered)
    assert 40 <= sent <= 45  # a row each, and what the model can do
    assert not (tmp_path / "judge.json").exists()
    rows = sum("<output" in asked for asked in server.answered)
    saved = paid("--method", "direct", "--optimizer", "zero-shot")
    assert saved.code == 0, saved.err
    assert "Nothing was searched" in saved.out
    assert sum("<output" in asked for asked in server.answered) == rows == 40
    assert (tmp_path / "judge.json").exists()


def test_json_has_what_waits(paid: Any, tmp_path: Path) -> None:
    ran = paid("--json")
    assert ran.code == 3
    told = json.loads(ran.out)
    assert told["judge"] is None
    assert told["calls"] <= 45
    waiting = told["search"]
    assert waiting["calls"] > 1000
    assert waiting["cost"] > 0
    assert waiting["may_pay"] in (True, False, None)
    dry = paid("--dry-run", "--json").told
    assert (dry["calls"], dry["cost"]) == (waiting["calls"], waiting["cost"])


@pytest.mark.parametrize(
    "agreed",
    [
        ("--yes", "--method", "direct"),
        ("--max-calls", 200, "--method", "direct"),
        ("--max-cost", 1, "--method", "direct"),
        ("--method", "direct", "--optimizer", "random-search"),
    ],
)
def test_who_has_agreed_is_not_asked(
    paid: Any, server: Any, tmp_path: Path, agreed: tuple[Any, ...]
) -> None:
    ran = paid(*agreed)
    assert ran.code == 0, ran.err
    assert (tmp_path / "judge.json").exists()
    assert len(server.answered) > 45


@pytest.mark.parametrize(("said", "searched"), [(False, False), (True, True)])
def test_a_person_is_asked(
    paid: Any,
    server: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: bool,
    searched: bool,
) -> None:
    monkeypatch.setattr(console, "asks", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: said)
    ran = paid("--method", "direct")
    assert ran.code == 0, ran.err
    assert (len(server.answered) > 45) is searched
    optimizer = json.loads((tmp_path / "judge.json").read_text())["provenance"][
        "optimizer"
    ]
    assert (optimizer["name"] != "zero-shot") is searched


def test_a_server_of_ones_own_is_not_asked_about(
    cli: Any, server: Any, rows_file: Any, tmp_path: Path
) -> None:
    server.answer = lambda ask: f"Score: {len(ask.last) % 60}"
    where = ("--api-base", server.base, "-o", tmp_path / "judge.json")
    ran = cli(
        "compile", rows_file(16), "--lm", "openai/fake", "--method", "direct", *where
    )
    assert ran.code == 0, ran.err


def test_a_name_that_the_library_lacks_is_asked_about_as_it_is(
    cli: Any, server: Any, tmp_path: Path
) -> None:
    server.answer = lambda ask: f"Score: {len(ask.last) % 60}"
    rows = tmp_path / "rows.jsonl"
    records = [
        {
            "source": f"Case {n}",
            "output": "It works. " * (n % 7 + 1) + str(n),
            "scores.zing": n % 5 + 1,
        }
        for n in range(24)
    ]
    rows.write_text("".join(json.dumps(one) + "\n" for one in records))
    ran = cli(
        "compile",
        rows,
        "--lm",
        PAID,
        "--api-base",
        server.base,
        "-o",
        tmp_path / "judge.json",
    )
    assert ran.code == 3, ran.err
    assert "--variant vanilla" in " ".join(ran.err.split())
    assert len(server.answered) <= 29
