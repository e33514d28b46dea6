"""BERTScore by the package of its authors, bert-score. Extra: `bertscore`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

from judgesmith import parts
from judgesmith.errors import ModelError
from judgesmith.parts import option
from judgesmith.programs.baselines.compared import (
    Against,
    Compared,
    ComparedMetric,
    needed,
)
from judgesmith.programs.baselines.metrics import PREFIX
from judgesmith.programs.registry import metrics


@metrics.register
class BertScore(ComparedMetric):
    """BERTScore, not rescaled with its baselines: the best of a row's references, or its source.

    The package cuts off what an encoder does not hold (mostly 512 tokens); verdicts say so. See `Options`.
    """

    name = "bertscore"
    about = "BERTScore: tokens matched by their vectors in an encoder, not rescaled (bert-score, weights needed)"
    paper = "BERTScore: Evaluating Text Generation with BERT (Zhang et al. 2020)"
    extra = "bertscore"
    at_once = 64

    class Options(parts.Options):
        model: str = option(
            "roberta-large",
            "An encoder of transformers: its name on the hub.",
            min_length=1,
        )
        of: Literal["f1", "precision", "recall"] = option(
            "f1", "F1, precision or recall."
        )
        layer: int | None = option(
            None,
            "Layer whose vectors are taken; none takes the one that BERTScore's authors found best.",
            ge=1,
        )
        against: Against = option(
            "reference",
            "What the output is compared with: its best reference, or the source.",
        )

    def ready(self) -> None:
        """Load the model."""
        self._scorer  # noqa: B018

    @cached_property
    def _scorer(self) -> Any:
        chosen: Any = self.chosen
        package = needed("bert_score", BertScore)
        try:
            return package.BERTScorer(model_type=chosen.model, num_layers=chosen.layer)
        except Exception as error:  # whatever a hub, a file or torch raises
            why = " ".join(str(error).split())[:300] or type(error).__name__
            raise ModelError(
                f"{PREFIX}{self.name}: the model {chosen.model} cannot be fetched or opened: {why}"
            ) from None

    def values(self, rows: Sequence[Compared]) -> list[float]:
        """Return precision, recall or F1 of each row."""
        chosen: Any = self.chosen
        scored = self._scorer.score(
            [output for output, _ in rows], [others for _, (others,) in rows]
        )
        values: list[float] = scored[
            ("precision", "recall", "f1").index(chosen.of)
        ].tolist()
        return values

    def partly(self, output: str, others: Sequence[str]) -> dict[str, float]:
        """Return the share of a text within the model's limit of tokens."""
        tokenizer = getattr(
            self._scorer, "_tokenizer", None
        )  # the package has no other way to its limit
        most = getattr(tokenizer, "model_max_length", math.inf)

        def share(text: str) -> float:
            if (
                tokenizer is None or len(text.encode()) <= most
            ):  # no token is less than a byte
                return 1.0
            return min(1.0, most / len(tokenizer.encode(text, verbose=False)))

        against = str(self.chosen.against)  # type: ignore[attr-defined]
        shares = {
            "output": share(output),
            against: min(map(share, others), default=1.0),
        }
        return {name: round(of, 4) for name, of in shares.items() if of < 1}
