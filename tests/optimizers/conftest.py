"""What tests of several optimizers share."""

import random
from typing import Any

import pytest

from judgesmith.datasets.records import Labels
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.testing.fake import make_labels
from judgesmith.testing.optimizers import truth


@pytest.fixture
def labels() -> Labels:
    """40 rows of 10 documents, random scores."""
    draw = random.Random(1)
    return make_labels(10, 4, lambda n: draw.randint(0, 100))


@pytest.fixture
def human(labels: Labels) -> dict[str, float]:
    """What people said, by row."""
    return truth(labels)


@pytest.fixture
def model(server: Any) -> LanguageModel:
    return language_model(
        "openai/fake", connection=Connection(api_base=server.base, attempts=2)
    )
