"""BERTScore by the package of its authors, bert-score. Extra: `bertscore`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from ... import parts
from ...errors import ModelError
from ...parts import option
from ...signatures.values import Verdict
from ..metrics import PREFIX, Metric, output_of
from ..registry import metrics
from .compared import Against, against, needed, one_line, others_of, sendable

_ROWS = 64  # rows that are scored together


@metrics.register
class BertScore(Metric):
    """BERTScore, not rescaled with its baselines: the best of a row's references, or its source. See `Options`."""

    name = "bertscore"
    about = "BERTScore: tokens matched by their vectors in an encoder, not rescaled (bert-score, weights needed)"
    paper = "BERTScore: Evaluating Text Generation with BERT (Zhang et al. 2020)"
    extra = "bertscore"

    class Options(parts.Options):
        model: str = option("roberta-large", "An encoder of transformers: its name on the hub.", min_length=1)
        of: Literal["f1", "precision", "recall"] = option("f1", "F1, precision or recall.")
        idf: bool = option(
            False, "Weigh rare tokens more, counted over the texts that the rows' outputs are compared with."
        )
        layer: int | None = option(
            None, "Layer whose vectors are taken; none takes the one that BERTScore's authors found best.", ge=1
        )
        against: Against = against()

    def score_many(self, rows: Iterable[Any]) -> Iterator[Verdict]:
        """See `Metric`. With idf, all rows are read before the first verdict. Raises MissingExtraError, ModelError."""
        chosen = self.chosen
        assert isinstance(chosen, BertScore.Options)
        read: Iterator[tuple[str, list[str]]]
        read = ((sendable(output_of(row)), others_of(row, chosen.against)) for row in rows)
        counted: dict[str, Any] = {}
        if chosen.idf:
            read, again = itertools.tee(list(read))
            counted = {"idf": True, "idf_sents": [text for _, others in again for text in others]}
        scorer = self._scorer(**counted)
        column = ("precision", "recall", "f1").index(chosen.of)
        while batch := list(itertools.islice(read, _ROWS)):
            asked = [place for place, (output, others) in enumerate(batch) if output and others]
            values: dict[int, float] = {}
            if asked:
                scored = scorer.score([batch[place][0] for place in asked], [batch[place][1] for place in asked])
                values = dict(zip(asked, scored[column].tolist(), strict=True))
            for place, (_, others) in enumerate(batch):
                if not others:
                    yield Verdict.failed(f"no {chosen.against} to compare with")
                else:  # an empty output is a bad text, not a failure
                    value = values.get(place, 0.0)
                    yield Verdict(score=value, percent=min(100.0, max(0.0, 100.0 * value)))

    def _scorer(self, **options: Any) -> Any:
        chosen = self.chosen
        assert isinstance(chosen, BertScore.Options)
        package = needed("bert_score", BertScore)
        try:
            return package.BERTScorer(model_type=chosen.model, num_layers=chosen.layer, **options)
        except Exception as error:  # of the hub, of torch, of an unknown model
            raise ModelError(
                f"{PREFIX}{self.name}: the model {chosen.model} cannot be fetched or opened: {one_line(error)}"
            ) from None
