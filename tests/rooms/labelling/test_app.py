"""The page's server: who gets in, what is kept, and what two tabs may do to each other."""

import json
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from json_lines import lines, write
from labelling import HOSTILE, Labelling, rows_to_label


@pytest.fixture
def running(spawn: Any, tmp_path: Path) -> Callable[..., Labelling]:
    def start(*arguments: object, rows: Path | None = None) -> Labelling:
        rows = rows or rows_to_label(tmp_path / "rows.jsonl")
        return Labelling(
            spawn(
                "label",
                rows,
                "--store",
                tmp_path / "s.sqlite",
                "--no-browser",
                *arguments,
            )
        )

    return start


def test_only_the_page_itself_gets_in(running: Any) -> None:
    at: Labelling = running()
    port = at.base.rpartition(":")[2]
    unit = at.next("Ada")["unit"]
    said = {
        "action": "answer",
        "rater": "Ada",
        "request": "r" * 16,
        "unit": unit["key"],
        "answer": {"score": 5},
    }
    own = {"X-Token": at.token, "Origin": at.base, "Content-Type": "application/json"}
    body = json.dumps(said)

    def status(**changed: str | None) -> int:
        headers = {
            **own,
            **{name.replace("_", "-"): value for name, value in changed.items()},
        }
        given = {name: value for name, value in headers.items() if value is not None}
        return httpx.post(
            f"{at.base}/api/events", content=body, headers=given, timeout=60
        ).status_code

    wrong = {
        401: [
            {"X_Token": None},
            {"X_Token": ""},
            {"X_Token": at.token[:-1]},
            {"X_Token": "x" * 9999},
        ],
        403: [
            {"Origin": None},
            {"Origin": "null"},
            {"Origin": "http://evil.example"},
            {"Origin": "http://127.0.0.1:1"},
            {"Origin": f"https://127.0.0.1:{port}"},
            {"Sec_Fetch_Site": "cross-site"},
            {"Sec_Fetch_Site": "same-site"},
        ],
        # A name that an attacker's DNS gives this machine's address to, and ports and names that are not ours.
        421: [
            {"Host": "evil.example"},
            {"Host": f"evil.example:{port}"},
            {"Host": "127.0.0.1"},
            {"Host": "127.0.0.1:1"},
        ],
        415: [
            {"Content_Type": "text/plain"},
            {"Content_Type": "application/x-www-form-urlencoded"},
        ],
    }
    for expected, changes in wrong.items():
        for changed in changes:
            assert status(**changed) == expected, changed
    for path in ("/api/next?rater=Ada", "/api/task", "/api/agreement?rater=Ada"):
        assert httpx.get(at.base + path).status_code == 401
        assert (
            at.http.get(path, headers={"Sec-Fetch-Site": "cross-site"}).status_code
            == 403
        )
        assert (
            at.http.get(path, headers={"Host": f"evil.example:{port}"}).status_code
            == 421
        )
    for path in ("/", "/page.js"):
        assert (
            httpx.get(at.base + path, headers={"Host": "evil.example"}).status_code
            == 421
        )
    streamed = httpx.post(
        f"{at.base}/api/events", content=iter([body.encode()]), headers=own, timeout=60
    )
    assert streamed.status_code == 411
    assert (
        at.http.request("OPTIONS", "/api/events").status_code == 405
    )  # no permission for another origin
    assert at.next("Ada")["done"] == 0  # and nothing of all that was kept
    assert status() == 200
    assert at.next("Ada")["done"] == 1


def test_nothing_on_the_page_may_load_or_run_what_is_not_its_own(running: Any) -> None:
    at: Labelling = running()
    for path in ("/", "/page.js", "/page.css", "/api/task"):
        headers = at.http.get(path).headers
        rule = headers["Content-Security-Policy"]
        assert rule.startswith("default-src 'none'")
        assert "unsafe" not in rule
        assert "frame-ancestors 'none'" in rule
        assert not [name for name in headers if name.startswith("access-control")]
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
    page = httpx.get(at.base).text
    assert "http://" not in page
    assert "https://" not in page
    assert at.token not in page


def test_it_listens_on_this_machine_alone(running: Any) -> None:
    at: Labelling = running()
    port = int(at.base.rpartition(":")[2])
    for _, _, _, _, address in socket.getaddrinfo(
        socket.gethostname(), port, socket.AF_INET, socket.SOCK_STREAM
    ):
        if not str(address[0]).startswith("127."):
            with pytest.raises(OSError):
                socket.create_connection((str(address[0]), port), timeout=5)


def test_bad_requests_say_what_is_wrong_and_keep_nothing(running: Any) -> None:
    at: Labelling = running()
    unit = at.next("Ada")["unit"]
    for sent in (
        at.answer("Ada", {"score": 9}),
        at.answer("Ada", None),
        at.answer("  ", {"score": 3}, unit),
        at.answer("x" * 100, {"score": 3}, unit),
        at.answer("Ada", {"score": 3}, unit | {"key": "other"}),
        at.answer("Ada", {"score": 3}, unit | {"turn": 1}),
        at.send("Ada", "skip", unit=unit["key"], reason=" "),
        at.send("Ada", "remove"),
        at.send("Ada", "skip", unit=unit["key"], reason="x", more=1),
    ):
        assert sent.status_code == 422
        assert len(sent.json()["error"]) > 5
    assert (
        at.http.post(
            "/api/events",
            content=b"x" * 2_000_000,
            headers={"Content-Type": "application/json"},
        ).status_code
        == 413
    )
    assert at.next("Ada")["done"] == 0


def test_texts_are_shown_without_what_acts_and_who_wrote_them(running: Any) -> None:
    at: Labelling = running()
    for _ in range(3):
        at.answer("Ada", {"score": 3})
    unit = at.next("Ada")["unit"]
    output = unit["texts"]["output"]
    assert output.startswith("<script>alert(1)</script>")
    assert len(output) == len(HOSTILE)
    assert "\u202e" not in output
    assert set(unit["texts"]) == {"source", "output"}
    at.answer("<b>Bo\u202e</b>\n", {"score": 5})
    assert at.http.get("/api/task").json()["raters"] == ["Ada", "<b>Bo\ufffd</b>"]


def test_two_tabs_lose_nothing(running: Any) -> None:
    at: Labelling = running()
    one = other = at.next("Ada")["unit"]
    assert at.answer("Ada", {"score": 4}, one).json()["done"] == 1
    conflict = at.answer("Ada", {"score": 2}, other)
    assert conflict.status_code == 409
    assert conflict.json()["error"].startswith("Not saved")
    shown = conflict.json()["unit"]
    assert (shown["key"], shown["answer"]) == (one["key"], {"score": 4})
    assert (
        at.answer("Ada", {"score": 2}, shown).status_code == 200
    )  # now that it was seen
    undone = at.send("Ada", "undo").json()["unit"]
    assert (undone["key"], undone["answer"], undone["after"]) == (
        one["key"],
        {"score": 2},
        shown["after"],
    )
    again = at.send("Ada", "undo").json()
    assert (again["unit"]["answer"], again["unit"]["after"]) == ({"score": 4}, None)
    assert (again["done"], again["undo"]) == (0, False)


def test_after_kill_9_the_same_command_goes_on_at_the_same_address(
    running: Any,
) -> None:
    first: Labelling = running("--repeats", 0.2)
    for _ in range(5):
        first.answer("Ada", {"score": 3})
    first.process.kill()
    first.process.wait()
    second: Labelling = running()
    assert second.address == first.address
    assert second.next("Ada")["done"] == 5
    assert second.next("Bo")["done"] == 0


def test_ctrl_c_ends_it_with_the_export_and_what_came_of_it(
    running: Any, tmp_path: Path
) -> None:
    at: Labelling = running("--json", "--export", tmp_path / "labels.jsonl", "--n", 2)
    at.answer("Ada", {"score": 4})
    at.send("Ada", "skip", unit=at.next("Ada")["unit"]["key"], reason="I cannot tell")
    assert at.next("Ada")["unit"] is None
    at.process.send_signal(signal.SIGINT)
    out = at.process.stdout.read()
    assert at.process.wait() == 0, at.lines
    told = json.loads(out)
    assert (
        told["rows"],
        told["labels"],
        told["exported"],
        told["skipped"][0]["reason"],
    ) == (2, 1, 1, "I cannot tell")
    (row,) = lines(tmp_path / "labels.jsonl")
    assert (row["rater"], row["score (1-5)"]) == ("Ada", 4)
    assert not [line for line in at.lines if "Traceback" in line]


def test_half_of_the_pairs_are_turned_round_and_answers_are_turned_back(
    running: Any, tmp_path: Path
) -> None:
    pairs = [
        {"prompt": f"p{i}", "response_a": f"good {i}", "response_b": f"bad {i}"}
        for i in range(40)
    ]
    rows = write(tmp_path / "pairs.jsonl", pairs)
    at: Labelling = running(
        "--kind", "preference", "--repeats", 0.5, "--json", rows=rows
    )
    turned = {}
    while (unit := at.next("Ada")["unit"]) is not None:
        side = "a" if unit["texts"]["output_a"].startswith("good") else "b"
        turned[unit["key"], unit["turn"]] = side
        at.answer("Ada", {"preference": side}, unit)
    assert len(turned) > 50
    assert 8 < sum(side == "b" for (_, turn), side in turned.items() if not turn) < 32
    assert all(turned[key, 0] != side for (key, turn), side in turned.items() if turn)
    at.process.send_signal(signal.SIGINT)
    told = json.loads(at.process.stdout.read())
    assert (told["labels"], told["raters"][0]["same"]) == (40, 1.0)
