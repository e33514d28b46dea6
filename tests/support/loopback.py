"""Fixtures of the optimizers' and the commands' tests: a server on loopback, labels, and a cache of each test's own."""

import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from judgesmith.datasets.records import Labels
from judgesmith.testing.server import (
    Ask,
    Fault,
    Server,
    judging,
    make_labels,
    make_rows,
    own_environment,
    running_server,
    sensible,
    written,
)


@pytest.fixture
def server() -> Iterator[Server]:
    with running_server() as made:
        yield made


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has its own cache of calls, and no model or server from the environment."""
    return own_environment(monkeypatch, tmp_path)


@pytest.fixture
def labels_of() -> Callable[..., Labels]:
    """labels_of(documents, per_document, score): scores by row number, on 0..100."""
    return make_labels


@pytest.fixture
def fake() -> Any:
    """The server's names, for tests that make answers of their own."""
    return types.SimpleNamespace(
        Ask=Ask, Fault=Fault, judging=judging, sensible=sensible, written=written, make_rows=make_rows
    )
