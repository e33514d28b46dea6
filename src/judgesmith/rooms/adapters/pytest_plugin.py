"""The pytest plug-in: `assert_judged` and `assert_agreement` as fixtures, which record what they find for JUnit.

It is loaded at every start of pytest, so nothing is imported before a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--write-baselines`."""
    parser.addoption(
        "--write-baselines",
        action="store_true",
        help="Have assert_judged write the scores of its baseline=FILE, instead of comparing with them.",
    )


@pytest.fixture
def assert_judged(
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> Callable[..., dict[str, Any]]:
    """Provide `judgesmith.assert_judged`, which records its numbers in JUnit's report."""
    from judgesmith.rooms.adapters.asserting import assert_judged

    write = bool(request.config.getoption("--write-baselines"))
    return partial(assert_judged, record=record_property, write_baseline=write)


@pytest.fixture
def assert_agreement(
    record_property: Callable[[str, object], None],
) -> Callable[..., dict[str, Any]]:
    """Provide `judgesmith.assert_agreement`, which records its numbers in JUnit's report."""
    from judgesmith.rooms.adapters.asserting import assert_agreement

    return partial(assert_agreement, record=record_property)
