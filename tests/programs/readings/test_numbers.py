"""Numbers from tokens, and what is counted without a model."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.errors import OptionError
from judgesmith.programs.readings.head import Readings
from judgesmith.programs.readings.kinds import Likelihood, surface
from judgesmith.programs.readings.passages import Text
from judgesmith.programs.readings.reader import TokenReading, token_numbers


def reading(logp: list[float], entropy: float = 1.0, top: float = -0.5) -> TokenReading:
    n = len(logp)
    values = (
        np.array(logp, np.float32),
        np.full(n, entropy, np.float32),
        np.full(n, top, np.float32),
    )
    return TokenReading(*values)


def test_likelihoods_of_four_tokens() -> None:
    found = Likelihood.numbers(Text("", "made"), reading([-1.0, -2.0, -3.0, -6.0]))
    assert found["mean"] == -3.0  # -(1+2+3+6)/4
    assert found["sum"] == -12.0
    assert found["min"] == -6.0
    assert found["q50"] == -2.5  # between -2 and -3
    assert found["q25"] == -3.75  # three quarters of the way from -6 to -3
    assert found["excess"] == 2.0  # mean surprise 3 less entropy 1
    assert found["gap"] == 2.5  # -0.5 - -3
    assert found["tokens"] == pytest.approx(math.log(4))


def test_numbers_of_logits() -> None:
    logits = (
        np.log(np.array([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]], dtype=np.float32)) + 7
    )  # any constant is the same
    logp, entropy, top = token_numbers(logits, [1, 1])
    assert np.exp(logp) == pytest.approx([0.25, 0.8], abs=1e-6)
    assert np.exp(top) == pytest.approx([0.5, 0.8], abs=1e-6)
    assert entropy[0] == pytest.approx(
        1.5 * math.log(2), abs=1e-5
    )  # .5 x 1 bit + 2 x .25 x 2 bits


def test_surface_of_a_short_pair() -> None:
    found = surface("The cat sat on the mat .", "The cat sat . The cat ran .")
    assert found["from_source"] == pytest.approx(
        4 / 5
    )  # the, cat, sat and the stop of the, cat, sat, ran, stop
    assert found["of_source"] == pytest.approx(4 / 6)  # of the, cat, sat, on, mat, stop
    assert found["variety"] == pytest.approx(5 / 8)
    assert found["repeated"] == pytest.approx(
        1 - 6 / 7
    )  # "the cat" comes twice among 7 pairs
    assert found["sentence"] == pytest.approx(math.log1p(4))


@given(st.text(max_size=300), st.text(max_size=300))
def test_surface_of_anything_is_finite(source: str, output: str) -> None:
    found = surface(source, output)
    assert all(math.isfinite(value) for value in found.values())
    assert all(
        0 <= found[name] <= 1
        for name in (
            "from_source",
            "of_source",
            "order",
            "copied",
            "variety",
            "repeated",
        )
    )


def test_a_reading_that_no_package_here_has_is_told() -> None:
    table = Readings(("assistant.mean",), np.zeros((2, 1)), (0, 1))
    with pytest.raises(OptionError, match="no package here reads 'numerals'"):
        table.columns(["numerals.new"])
    with pytest.raises(OptionError, match=r"'assistant.other'; it has assistant.mean"):
        table.columns(["assistant.other"])
