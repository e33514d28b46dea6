"""`judgesmith discern --preset`: a method as judge, and a dry run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOOD = [
    f"The ferry number {i} left Birch at {i + 3} in the morning with {i + 40} people on board. Nobody in Birch had "
    f"expected it so early, for {i + 2} winters had passed without one. It went back in the evening, and the {i + 5} "
    "fishermen who had come to look at it went home, talked of it for a week and told all of it to their children."
    for i in range(10)
]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "mt.jsonl"
    made = [
        {"id": f"r{i}", "source": f"Fähre {i}.", "output": text, "reference": f"Another {i}.", "task": "translation"}
        for i, text in enumerate(GOOD)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in made))
    return path


@pytest.fixture
def discern(cli: Any, server: Any, fake: Any) -> Callable[..., Any]:
    def run(*arguments: object) -> Any:
        server.answer = lambda ask: "80" if ask.step != "probe" and any(t in ask.last for t in GOOD) else "30"
        return cli(
            "discern", *arguments, "--api-base", server.base, "--rounds", 0, "--repeat", 1, "--preset",
            "dhp/wmt22-de-en",
        )  # fmt: skip

    return run


def test_a_method_judges_each_metric_of_the_task(discern: Any, server: Any, texts: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    done = discern("direct@openai/fake", texts, "-o", pairs, "--json")
    assert done.code == 0, done.err
    judge = done.json
    assert (judge["judge"], judge["metrics"]) == ("direct@openai/fake", ["accuracy", "fluency"])
    assert judge["paper"]["worst"] and judge["paper"]["d_min"] > 1
    assert {line["origin"] for line in judge["perturbations"]} == {"paper", "stand-in"}
    assert any("stand-ins (~) are made by rules" in note for note in done.json["notes"])
    assert not any("<reference>" in ask.last or "Another" in ask.last for ask in server.asks)
    server.forget()
    assert discern("direct@openai/fake", texts, "-o", pairs, "--json").json == judge
    assert not server.judged


def test_tables_have_headings_of_their_own(discern: Any, texts: Path) -> None:
    done = discern("direct@openai/fake", texts, "--perturb", "paper", "--perturb", "numbers")
    assert done.code == 0, done.err
    parts = ("the paper's perturbations", "stand-ins by rules", "perturbations of our own")
    places = [done.out.index(part) for part in parts]
    assert places == sorted(places)
    assert "Both rest on 6 of the paper's 10 perturbations of this task (without entities-lm:minor" in done.out
    assert "numbers:minor +" in done.out and "grammar-rules:minor ~" in done.out
    assert done.out.index("As the paper prints it, without 1/M") < done.out.index("Normalised (1/M)")


def test_a_dry_run_shows_texts_perturbations_and_calls(discern: Any, server: Any, texts: Path) -> None:
    command = ("direct@openai/fake", texts, "--writer", "openai/writer", "--dry-run")
    done = discern(*command, "--json")
    assert done.code == 0, done.err
    plan = done.json
    assert not server.judged
    assert (plan["texts"]["n"], plan["texts"]["task"], plan["metrics"]) == (
        10, "translation", ["translation/accuracy", "translation/fluency"],
    )  # fmt: skip
    lines = {line["perturbation"]: line for line in plan["perturbations"]}
    assert len(lines) == 10 and {line["origin"] for line in lines.values()} == {"paper"}
    assert {line["n"] for line in lines.values()} == {10}
    # 10 perturbations and the originals, two metrics; four of the perturbations are to be written first
    assert (plan["calls"], plan["to_write"], plan["writer"]) == (11 * 10 * 2, 40, "openai/writer")
    out = discern(*command).out
    assert "10 of 10 outputs of mt.jsonl" in out and "word-deletion:major (paper): 10 texts" in out
    assert "40 texts to be written by openai/writer first" in out
