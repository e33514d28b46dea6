"""Contract of every benchmark set whose rows come with its package."""

from __future__ import annotations

import math
from typing import ClassVar

from judgesmith.datasets.benchmarks.registry import BenchmarkCard, benchmarks
from judgesmith.datasets.loading import read_labels


class BenchmarkContract:
    """Subclass it in a test module, name the `card`, and pytest runs all of this over it."""

    card: ClassVar[BenchmarkCard]

    def test_it_is_registered_and_says_where_it_is_from(self) -> None:
        assert benchmarks.get(self.card.name) is self.card
        for said in ("title", "task", "paper", "licence", "aggregation"):
            assert getattr(self.card, said), said

    def test_its_rows_are_those_that_the_card_speaks_of(self) -> None:
        assert self.card.file is not None
        for aspect, (worst, best) in self.card.aspects.items():
            labels = read_labels(self.card.file, aspect=aspect)
            assert len(labels.rows) == self.card.rows
            assert len({row.doc_id for row in labels.rows}) == self.card.documents
            low = worst if math.isfinite(worst) else min(labels.scores)
            assert all(low <= score <= best for score in labels.scores)
