"""`judgesmith compile --also discern`: finalists that agree, that notice perturbations, or cost little."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from json_lines import Rows, lines

from judgesmith.choosing.front import Point, front
from judgesmith.optimizers.seen import Seen

FORM = "--method active-critic --variant vanilla --explain before --reading said"
FEW = f"{FORM} --optimizer labeled-few-shot --heldout 0.25 --json"
HARM = "typos:major,word-deletion:major,case,attack-plea"
ALSO = ("--also", "discern", "--discern-texts", 8, "--discern-perturb", HARM)


@pytest.fixture
def compiled(rows_file: Rows, server: Any, fake: Any, cli: Any, tmp_path: Path) -> Any:
    """compiled(…): 64 rows.

    Without demonstrations the model agrees roughly and knows the texts; with some it knows people's scores, is blind to
    what is done to a text, and does what that asks.
    """
    known = {row["output"] for row in lines(rows_file(64))}

    def answer(ask: Any) -> float:
        said = int(ask.mark[1:]) * 37 % 101 if ask.mark else 50
        if ask.shown:
            return 100 if "at the very top" in ask.judged else said
        return (
            30 + said * 0.4 + sum(map(ord, ask.judged)) % 30
            if ask.judged in known
            else 1
        )

    server.answer = fake.judging(answer)
    model = (
        "--lm",
        "openai/fake",
        "--api-base",
        server.base,
        "--scale",
        0,
        100,
        "-o",
        tmp_path / "made.json",
    )
    return lambda *more: cli(
        "compile", tmp_path / "rows.jsonl", *model, *FEW.split(), *more
    )


def test_what_sees_more_is_on_the_front_and_can_be_taken(
    compiled: Any, server: Any, tmp_path: Path
) -> None:
    plain, best, asked = (
        compiled().told,
        json.loads((tmp_path / "made.json").read_text()),
        len(server.asks),
    )
    assert "front" not in plain
    assert not list(tmp_path.glob("*.html"))
    most = (
        compiled(*ALSO, "--dry-run").told["calls"] - compiled("--dry-run").told["calls"]
    )
    few, bare = (found := compiled(*ALSO).told["front"])["points"]
    again = json.loads((tmp_path / "made.json").read_text())
    assert again["provenance"].pop("created")
    assert best["provenance"].pop("created")
    assert again == best
    assert (
        found["front"]
        == [few["name"], bare["name"]]
        == ["labeled few-shot", "zero-shot"]
    )
    assert few["agreement"][0] > bare["agreement"][0]
    assert few["tokens"] > bare["tokens"] > 0
    # 8 texts that all lose score: p = 2**-8
    assert few["least_d"][0] < 1
    assert bare["least_d"][0] == pytest.approx(8 * math.log(2) / math.log(20))
    assert (few["false_alarms"], bare["false_alarms"]) == (0, 1)
    assert few["gain"] > 0 > bare["gain"]
    seen, compared = Seen(best["provenance"]), {ask.mark for ask in server.asks[asked:]}
    held_out = {
        r["id"]
        for r in lines(tmp_path / "rows.jsonl")
        if not seen.knows(r["source"], r["output"])
    }
    assert len(held_out) == 16
    assert not held_out & compared
    assert 0 < len(server.asks) - asked <= most
    asked, taken = len(server.asks), compiled(*ALSO, "--take", "zero-shot").told
    assert [p["name"] for p in taken["front"]["points"]] == [
        "zero-shot",
        "labeled few-shot",
    ]
    assert taken["selected"]["candidate"] == "zero-shot"
    assert taken["heldout"] == plain["zero_shot"]
    assert any("asked for by its name" in note for note in taken["notes"])
    assert len(server.asks) == asked
    page = (tmp_path / "made.front.html").read_text()
    assert page.count("<svg") == 4
    assert page.count("<title>labeled few-shot</title>") == 4


def test_what_cannot_be_compared_is_refused_and_a_budget_holds_for_all(
    compiled: Any, server: Any
) -> None:
    compiled("--take", "zero").refused(
        "no candidate 'zero' (did you mean 'zero-shot'?)", "labeled few-shot"
    )
    compiled(*ALSO[2:]).refused("has no effect without --also discern")
    compiled("--also", "agree").refused("also", "'discern'", "'agree'")
    compiled(*ALSO[:-1], "wrong-ending").refused(
        "no training output could be perturbed"
    )
    asked, most = len(server.asks), compiled(*ALSO, "--dry-run").told["calls"]
    compiled(*ALSO, "--max-calls", most // 2).refused(
        "was used up before there was a judge"
    )
    assert len(server.asks) - asked < most // 2
    assert len(compiled(*ALSO, "--max-calls", 2 * most).told["front"]["points"]) == 2


def test_what_is_beaten_in_everything_is_off_the_front() -> None:
    plain = Point(
        "plain", (2, 1, 3), (1, math.nan, math.nan), "typos", 0.5, 0.0, 100.0, 0
    )
    others: dict[str, dict[str, Any]] = {
        "sees": {"agreement": (1, 0, 2), "least_d": (3, 2, 4)},
        "sees less": {"agreement": (1, 0, 2)},
        "undefined": {"least_d": (math.nan,) * 3},
        "lowers": {"gain": -0.4},
        "raises": {"gain": 0.1},
        "alarms": {"false_alarms": 0.6},
        "dear": {"tokens": 101.0},
        "cheap": {"agreement": (1, 0, 2), "tokens": 99.0},
    }
    points = [
        plain,
        *(replace(plain, name=name, **more) for name, more in others.items()),
    ]
    assert front(points) == ["plain", "sees", "lowers", "cheap"]
