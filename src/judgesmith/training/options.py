"""How a student is trained: every number of it, with its help."""

from __future__ import annotations

from typing import Literal

from ..parts import Options, option


class TrainOptions(Options):
    """How a student is trained."""

    rank: int = option(16, "Rank of the low-rank weights (LoRA).", ge=1, le=1024)
    alpha: float = option(32.0, "What they are multiplied by, times 1 / rank.", gt=0)
    dropout: float = option(0.0, "Share of the inputs of low-rank weights that is left out while training.", ge=0, lt=1)
    learning_rate: float = option(5e-4, "Of AdamW, at its highest.", gt=0)
    weight_decay: float = option(0.01, "Of AdamW.", ge=0)
    warmup: float = option(0.05, "Share of the steps in which the learning rate rises; then it falls to 0.", ge=0, lt=1)
    epochs: int = option(6, "Passes over the training rows at most.", ge=1)
    batch: int = option(8, "Rows of a step.", ge=1)
    target: Literal["score", "annotation"] = option(
        "score",
        "What the student learns to answer: the score alone, or errors with their spans and then the score (synthetic "
        "examples that have been annotated, as OpeNLGauge does).",
    )
    loss: Literal["both", "regression", "cross-entropy"] = option(
        "both",
        "What is fitted: the squared error of the expected digit (regression), the probability of the score's own "
        "digits (cross-entropy), or both.",
    )
    regression_weight: float = option(1.0, "Weight of the squared error beside the cross-entropy.", gt=0)
    ranking_weight: float = option(
        0.0, "Weight of a loss over pairs of rows of one document in which the worse one scores higher.", ge=0
    )
    human_weight: float = option(
        4.0,
        "What a human rating counts, where a synthetic example counts 1; 0: ratings are not trained on, they only "
        "decide when to stop.",
        ge=0,
    )
    stop_share: float = option(
        0.2,
        "Share of the labels (whole documents) by which the best epoch is chosen; these are not trained on. 0: the "
        "last epoch is taken.",
        ge=0,
        lt=0.9,
    )
    patience: int = option(2, "Epochs without a better Q on those, after which training ends.", ge=1)
    checkpoint_every: int = option(5, "Steps between two checkpoints; the end of an epoch is one, too.", ge=1)
    tokens_at_once: int = option(
        2048, "Tokens that are computed together: fewer take less memory, more are faster.", ge=1
    )
    longest: int = option(3072, "Prompts of more tokens are left out, and counted.", ge=64)
    dtype: Literal["float32", "bfloat16"] = option(
        "float32",
        "Of the base model's weights while training; bfloat16 takes half the memory and is more than twice as fast on "
        "processors that compute with it (avx512_bf16, amx_bf16) and on graphics cards.",
    )
    threads: int | None = option(None, "Threads that compute; none: as many as there are cores.", ge=1)
