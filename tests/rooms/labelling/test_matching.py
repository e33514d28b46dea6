"""Rows on which a judge agrees with another one as on all rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from json_lines import write

from judgesmith.agreement.correlation import correlate
from judgesmith.errors import OptionError
from judgesmith.rooms.labelling.matching import MATCHED, matched_rows


def coefficients(x: Any, y: Any) -> np.ndarray[Any, Any]:
    return np.array(
        [correlate(x, y, coefficient=name, level="pooled").value for name in MATCHED]
    )


def test_the_rows_match_and_are_free() -> None:
    rng = np.random.default_rng(0)
    judge = rng.normal(size=300)
    other = judge + rng.normal(size=300)
    other[5], free = np.nan, np.arange(300) > 20
    rows = matched_rows(judge, other, 30, free=free, seed=1)
    assert len(set(rows)) == 30
    assert rows == sorted(rows)
    assert min(rows) > 20
    scored = ~np.isnan(other)
    whole = coefficients(judge[scored], other[scored])
    apart = np.abs(coefficients(judge[rows], other[rows]) - whole).mean()
    at_random = [
        rng.choice(np.flatnonzero(scored), 30, replace=False) for _ in range(200)
    ]
    assert (
        apart
        < 0.02
        < np.mean(
            [np.abs(coefficients(judge[k], other[k]) - whole).mean() for k in at_random]
        )
    )
    assert matched_rows(judge, other, 30, free=free, seed=1) == rows


def test_a_judge_like_its_stand_in_is_estimated_with_less_error() -> None:
    rng, errors = np.random.default_rng(3), []
    for seed in range(30):
        judge = rng.normal(size=300)
        shared = rng.normal(
            size=300
        )  # what people and the stand-in have in common beside the judge
        people, other = (judge + shared + 0.4 * rng.normal(size=300) for _ in "ab")
        whole = coefficients(judge, people)
        ours, blind = (
            matched_rows(judge, other, 30, seed=seed),
            rng.choice(300, 30, replace=False),
        )
        errors.append(
            [
                np.abs(coefficients(judge[k], people[k]) - whole).mean()
                for k in (ours, blind)
            ]
        )
    matched, blind = np.mean(errors, axis=0)
    assert matched < 0.85 * blind


def test_what_cannot_be_matched_is_refused() -> None:
    with pytest.raises(OptionError, match="at most the 4 that both judges scored"):
        matched_rows([1, 2, 3, 4, np.nan], [1, 2, 3, 4, 5], 5)
    with pytest.raises(OptionError, match="constant"):
        matched_rows([1, 1, 1, 1], [1, 2, 3, 4], 4)
    with pytest.raises(OptionError, match="one per row each"):
        matched_rows([1, 2], [1], 4)


def test_suggest_for_agreement(cli: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=60)
    rows = [
        {
            "id": f"r{i}",
            "source": f"question {i * 7919}",
            "output": f"answer {i * i} of {i}",
            "a": float(one),
            "b": i % 7,
        }
        for i, one in enumerate(scores)
    ]
    path = write(tmp_path / "rows.jsonl", rows)
    words = ("suggest", path, "--for", "agreement", "-n", 12, "--judge", "a")
    assert len(cli(*words, "--judge", "b", "--json").told["ids"]) == 12
    cli(*words).refused_at_once("--for agreement needs two")
    chance = [
        row | {"score": i % 3 if i % 4 == 0 else None, "p": 0.2 + 0.1 * (i % 7)}
        for i, row in enumerate(rows)
    ]
    path = write(tmp_path / "chance.jsonl", chance)
    told = cli("estimate", path, "--judge", "a", "--probability", "p", "--json").told
    plain = cli("estimate", path, "--judge", "a", "--json").told
    assert told["systems"]["all rows"]["human"] != plain["systems"]["all rows"]["human"]
    cli("estimate", path, "--judge", "a", "--probability", "q").refused_at_once(
        "there is no column 'q'"
    )
