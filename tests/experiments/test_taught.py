"""A scripted model that learns from demonstrations: the search finds them where they help."""

import pytest

from judgesmith.experiments.bench.taught import FOUR, once


@pytest.mark.slow
def test_a_large_effect_is_found_and_reported_as_it_is() -> None:
    runs = [once("large", seed, "random-search", **FOUR) for seed in range(3)]
    for run in runs:
        assert run.demos == 4
        assert run.way > 0.9
        assert run.calls == 11 * 40
    off = [run.reported - run.chosen for run in runs]
    assert abs(sum(off) / len(off)) < 0.25


@pytest.mark.slow
def test_noise_seldom_replaces_the_plain_prompt() -> None:
    runs = [once("none", seed, "random-search", **FOUR) for seed in range(3, 8)]
    assert sum(run.demos > 0 for run in runs) <= 2
