"""The readers of the metrics' tests."""

import pytest
from reading_stand_ins import Copyist, Letters

from judgesmith.programs.baselines import likelihood, vectors


@pytest.fixture
def copyist(monkeypatch: pytest.MonkeyPatch) -> Copyist:
    """What likelihoods are read with."""
    made = Copyist()
    monkeypatch.setattr(likelihood, "reader_of", lambda model, metric: made)
    return made


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> Letters:
    """What vectors are read with."""
    made = Letters()
    monkeypatch.setattr(vectors, "reader_of", lambda model, metric: made)
    return made
