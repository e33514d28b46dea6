"""Recorded answers through the rules of `compile`: by the command, from a file of sets, and resumed."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from judgesmith.agreement.correlation import CorrelationSum
from judgesmith.cli.main import app
from judgesmith.experiments.studies import replay
from judgesmith.experiments.studies.replay import (
    Outcome,
    agreements,
    gain,
    play,
    read_sets,
    tasks_of,
)

NAMES = ("choosing", "compared", "families", "models", "juries")
SETS = """
sets:
  - labels: rows.jsonl
    family: notes
    aspects: [quality]
    panels:
      gpt: [a, b, c, d]
    column: "{model}.{prompt}"
    juries:
      one prompt: [gpt.wild, gpt.far]
"""


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """Four prompts that see the quality through noise of their own, and one that says the middle of nearly all."""
    rng = np.random.default_rng(0)
    human = rng.integers(1, 6, size=160)
    rows = [
        {
            "id": f"r{n}",
            "source": f"Source {n // 2}.",
            "output": f"Output {n}.",
            "doc_id": f"d{n // 2}",
            "scores": {"quality": int(score)},
            "judges": {
                **{
                    f"gpt.{prompt}": float(score + 3 * rng.normal())
                    for prompt in "abcd"
                },
                "gpt.wild": float(np.clip(np.round(score + 4 * rng.normal()), 1, 5)),
                "gpt.far": {0: 1, 1: 5}.get(n, 3),
            },
        }
        for n, score in enumerate(human)
    ]
    rows[3]["judges"]["gpt.b"] = None
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    (tmp_path / "sets.yaml").write_text(SETS, encoding="utf-8")
    return tmp_path / "sets.yaml"


def run(*words: object) -> Any:
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    return done


def test_averaging_beats_one_prompt_and_nearness_misleads(sets: Path) -> None:
    (spec,) = read_sets(sets)
    panel, jury = tasks_of(spec, sets)
    assert panel.percents.shape == (160, 4)
    assert np.isnan(panel.percents).sum() == 1
    outcome = play(panel, 6, sizes=(20, 40, 5000))
    assert (
        outcome.mean(40, "mean of all")
        > outcome.mean(40, "mean of 2 at random")
        > outcome.mean(40, "one at random")
    )
    assert outcome.mean(40, "the best in hindsight") >= outcome.mean(40, "chosen by Q")
    assert math.isnan(outcome.mean(5000, "mean of all"))
    of_two = play(jury, 6, sizes=(40,))
    assert of_two.mean(40, "chosen by closeness") < of_two.mean(40, "chosen by Q")


def test_the_command_saves_tables_and_resumes(
    sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("study", "replay", sets, "--draws", 2, "-o", tmp_path / "out", "--json")
    tables = json.loads(run(*command).stdout)["tables"]
    assert set(tables) == {f"replay-{name}" for name in NAMES}
    saved = json.loads((tmp_path / "out/replay-choosing.json").read_text())
    assert saved["commands"] == ["judgesmith study replay sets.yaml --draws 2"]
    assert [row[0] for row in saved["rows"]][:2] == ["chosen by Q", "chosen by Pearson"]
    monkeypatch.setattr(replay, "play", None)  # nothing is played again
    assert json.loads(run(*command).stdout)["tables"] == tables
    assert "replay-juries" in run(*command[:-1]).stdout


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 4))),
        min_size=3,
        max_size=20,
    )
)
def test_agreements_are_those_of_a_search(rows: list[tuple[int, int | None]]) -> None:
    human = np.array([people for people, _ in rows], float)
    judge = np.array([math.nan if said is None else said for _, said in rows], float)
    if np.isnan(judge).all():
        return
    expected = CorrelationSum()(judge, human).q
    assert agreements(judge[:, None], human).sum() == pytest.approx(expected, abs=1e-9)


def outcome(model: str, by: float) -> Outcome:
    return Outcome(
        "panel", "notes", model, "quality", 4, 100, 9, {(40, "a"): by, (40, "b"): 0.0}
    )


def test_a_gain_has_an_interval_over_clusters() -> None:
    some = [outcome("x", 0.1), outcome("x", 0.3), outcome("y", 0.4)]
    found = gain(some, 40, "a", "b", by=lambda one: one.cluster)
    # means of clusters .2 and .4; t(.975, 1) = 12.706, standard error .1
    assert (found.value, found.clusters) == (pytest.approx(0.3), 2)
    assert found.high - found.value == pytest.approx(1.2706, abs=1e-3)
    assert math.isnan(gain(some[:1], 40, "a", "b", by=lambda one: one.cluster).low)
    assert math.isnan(gain(some, 20, "a", "b", by=lambda one: one.cluster).value)


def test_the_recorded_public_sets_are_described() -> None:
    sets = read_sets(None)
    assert {"hanna.jsonl", "summeval.jsonl", "strong/wmt22_ende.jsonl"} <= {
        one.labels for one in sets
    }
    assert all(one.panels or one.juries for one in sets)
