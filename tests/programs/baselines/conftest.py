"""The models of the metrics' tests: stand-ins that are written here."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from reading_stand_ins import Copyist

from judgesmith.programs.baselines import likelihood


@pytest.fixture
def copyist(monkeypatch: pytest.MonkeyPatch) -> Copyist:
    """What likelihoods are read with."""
    made = Copyist()
    monkeypatch.setattr(likelihood, "reader_of", lambda model, metric: made)
    return made


@pytest.fixture
def bert_score(monkeypatch: pytest.MonkeyPatch) -> Any:
    """bert-score in small: precision and recall are shares of words, and the best reference counts."""
    made: Any = ModuleType("bert_score")
    made.options = []

    class Scorer:
        def __init__(self, **options: Any) -> None:
            if options["model_type"] == "nobody/nothing":
                raise OSError("no such model")
            made.options.append(options)

        def score(self, outputs: list[str], others: list[list[str]]) -> list[Any]:
            rows = [
                max(_shares(output, other) for other in some)
                for output, some in zip(outputs, others, strict=True)
            ]
            return [
                SimpleNamespace(tolist=lambda column=column: list(column))
                for column in zip(*rows, strict=True)
            ]

    made.BERTScorer = Scorer
    monkeypatch.setitem(sys.modules, "bert_score", made)
    return made


def _shares(output: str, other: str) -> tuple[float, float, float]:
    both = set(output.split()) & set(other.split())
    precision, recall = (
        len(both) / max(1, len(output.split())),
        len(both) / len(other.split()),
    )
    return (
        precision,
        recall,
        2 * precision * recall / (precision + recall) if both else 0.0,
    )
