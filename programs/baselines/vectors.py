"""BERTScore and MoverScore: how near the vectors of an output's tokens lie to those of another text.

Sources: "BERTScore: Evaluating Text Generation with BERT" (Zhang et al. 2020), "MoverScore: Text Generation Evaluating
with Contextualized Embeddings and Earth Mover Distance" (Zhao et al. 2019). Vectors come from an encoder of
transformers, as in the papers, or, in the metrics whose names end in -lm, from the hidden states of a causal language
model inside the process. There a token knows only what stands before it: those are ours, not the papers' metrics.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from ... import parts
from ...errors import ModelError, OptionError
from ...parts import option
from ...signatures.values import Verdict
from ..metrics import PREFIX, output_of
from ..readings.passages import Text, passage
from ..readings.reader import StateReader
from ..registry import metrics
from .compared import Against, ComparedMetric, against, others_of
from .embedding import sendable
from .likelihood import MODEL, reader_of
from .weights import load

__all__ = ["Embedded", "bertscore", "idf_weights", "moverscore"]

Floats = npt.NDArray[np.float64]
#: The layers that BERTScore's authors found best on WMT-16, of models that are much used.
LAYERS = {
    "bert-base-uncased": 9, "bert-base-cased": 9, "bert-large-uncased": 18, "bert-base-multilingual-cased": 9,
    "roberta-base": 10, "roberta-large": 17, "distilbert-base-uncased": 5, "xlm-roberta-base": 9,
    "microsoft/deberta-xlarge-mnli": 40, "facebook/bart-large-mnli": 11,
}  # fmt: skip
_DEPTH = 0.7  # of other models, as a share of their layers: 9 of 12, 17 of 24
_DEPTH_LM = 0.5
_KEPT = 256  # texts whose vectors are kept, since many outputs have the same source or reference


@dataclass(frozen=True, slots=True)
class Embedded:
    """A text's tokens with their vectors of length 1, shape (tokens, width). counted: False for the marks around it,
    which may be matched and have no weight."""

    tokens: tuple[int, ...]
    vectors: Floats
    counted: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, tokens: Iterable[int], vectors: npt.ArrayLike, counted: npt.ArrayLike | None = None) -> Embedded:
        made, states = tuple(tokens), np.asarray(vectors, dtype=np.float64)
        lengths = np.linalg.norm(states, axis=1, keepdims=True)
        every = np.ones(len(made), dtype=bool) if counted is None else np.asarray(counted, dtype=bool)
        return cls(made, states / np.maximum(lengths, 1e-12), every)


Embed = Callable[[str], Embedded]


def idf_weights(texts: Iterable[Iterable[int]]) -> Callable[[int], float]:
    """The weight of a token: log((M + 1) / (m + 1)) where m of the M texts have it. Source: BERTScore, §3."""
    there: Counter[int] = Counter()
    count = 0
    for count, tokens in enumerate(texts, start=1):  # noqa: B007  the last one is how many there are
        there.update(set(tokens))
    return lambda token: math.log((count + 1) / (there[token] + 1))


def _weights(text: Embedded, weight: Callable[[int], float] | None) -> Floats:
    """Shares of the tokens, which sum to 1; all NaN where none has a weight."""
    raw = np.array([1.0 if weight is None else weight(token) for token in text.tokens]) * text.counted
    total = float(raw.sum())
    return raw / total if total > 0 else np.full(len(raw), math.nan)


def bertscore(
    output: Embedded, other: Embedded, weight: Callable[[int], float] | None = None
) -> tuple[float, float, float]:
    """Precision, recall and F1, each in [-1, 1]: every token is matched with the nearest of the other text, and their
    cosines are averaged by weight. NaN where no token has a weight. Source: BERTScore, §3."""
    cosines = output.vectors @ other.vectors.T
    precision = float(_weights(output, weight) @ cosines.max(axis=1))
    recall = float(_weights(other, weight) @ cosines.max(axis=0))
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0.0


def moverscore(output: Embedded, other: Embedded, weight: Callable[[int], float] | None = None) -> float:
    """1 / (1 + d) in (0, 1]: d is the least weight times distance that moves the output's tokens to the other text's.

    Tokens of one word (n = 1), Euclidean distance of vectors of length 1, as in the second version of the authors'
    program. NaN where no token has a weight. Source: MoverScore, §3.
    """
    from scipy.stats import wasserstein_distance_nd

    mass = [_weights(text, weight) for text in (output, other)]
    if any(np.isnan(one).any() for one in mass):
        return math.nan
    moved = wasserstein_distance_nd(
        output.vectors[mass[0] > 0], other.vectors[mass[1] > 0], mass[0][mass[0] > 0], mass[1][mass[1] > 0]
    )
    return 1.0 / (1.0 + max(0.0, float(moved)))


def encoder_embed(name: str, layer: int | None, metric: str) -> Embed:
    """Vectors by an encoder of transformers. Raises MissingExtraError, ModelError, OptionError."""
    loaded = load(name, "AutoModel", metric)
    model = loaded.model.get_encoder() if loaded.model.config.is_encoder_decoder else loaded.model
    torch, tokenizer = loaded.torch, loaded.tokenizer
    layers = int(getattr(model.config, "num_hidden_layers", 0) or model.config.encoder_layers)
    place = _layer(layer if layer is not None else LAYERS.get(name), layers, _DEPTH, name, metric)

    def embed(text: str) -> Embedded:
        read = tokenizer(
            text, return_tensors="pt", truncation=True, max_length=loaded.longest, return_special_tokens_mask=True
        )
        marks = read.pop("special_tokens_mask")[0].numpy().astype(bool)
        with torch.inference_mode():
            states = model(**read, output_hidden_states=True).hidden_states[place][0]
        return Embedded.of(read["input_ids"][0].tolist(), states.float().numpy(), ~marks)

    return embed


def lm_embed(name: str | None, layer: int | None, metric: str) -> Embed:
    """Vectors by the hidden states of a causal model inside the process. Raises ModelError, OptionError."""
    reader = reader_of(name, metric)
    layers = reader.ability.layers
    if not layers:
        raise ModelError(f"{metric}: {reader.name} gives no hidden states; read with a local model (local/…, gguf:…)")
    place = _layer(layer, layers, _DEPTH_LM, reader.name, metric)
    states = cast(StateReader, reader).states
    return lambda text: Embedded.of(*states(passage("bare", Text("", text), reader.chat), place))


def _layer(wanted: int | None, layers: int, depth: float, name: str, metric: str) -> int:
    place = wanted if wanted is not None else max(1, round(depth * layers))
    if not 1 <= place <= layers:
        raise OptionError(f"{metric}: layer {place} of {name}, which has 1 to {layers}")
    return place


class VectorMetric(ComparedMetric):
    """Base: values from the vectors of two texts, weighted by idf where that is wanted."""

    _weight: Callable[[int], float] | None = None

    @cached_property
    def _embed(self) -> Embed:
        kept: dict[str, Embedded] = {}
        chosen: Any = self.chosen
        by = encoder_embed if self.extra else lm_embed
        embed = by(chosen.model, chosen.layer, f"{PREFIX}{self.name}")

        def remembered(text: str) -> Embedded:
            if text not in kept:
                if len(kept) >= _KEPT:
                    del kept[next(iter(kept))]
                kept[text] = embed(text)
            return kept[text]

        return remembered

    def ready(self) -> None:
        self._embed  # noqa: B018

    def score_many(self, rows: Iterable[Any]) -> Iterator[Verdict]:
        """See `ComparedMetric`. With idf, all rows are read before the first verdict: how rare a token is, is counted
        over the distinct texts that outputs are compared with."""
        self.ready()
        chosen: Any = self.chosen
        self._weight = None
        if chosen.idf:  # of a single text, every token would weigh nothing
            rows, again = itertools.tee(rows)
            texts = dict.fromkeys(text for row in again for text in others_of(row, chosen.against))
            if len(texts) > 1:
                self._weight = idf_weights(self._embed(text).tokens for text in texts)
        for row in rows:
            yield self.verdict(output_of(row), others_of(row, chosen.against))

    def value(self, output: str, other: str) -> float:
        made, wanted = self._embed(sendable(output)), self._embed(other)
        return self.of_vectors(made, wanted, self._weight)

    def of_vectors(self, output: Embedded, other: Embedded, weight: Callable[[int], float] | None) -> float:
        raise NotImplementedError


_IDF = "Weigh rare tokens more, counted over the texts that the rows' outputs are compared with, if these are several."
_LAYER = "Layer whose vectors are taken; none takes {}."
_OF_ENCODER = _LAYER.format("the one that BERTScore's authors found best, or 0.7 of the depth")
_OF_LM = _LAYER.format("the middle one")
_ENCODER = "An encoder of transformers: its name on the hub, or its folder."
Of = Literal["f1", "precision", "recall"]


class _BertScoring(VectorMetric):
    paper = "BERTScore: Evaluating Text Generation with BERT (Zhang et al. 2020)"

    def of_vectors(self, output: Embedded, other: Embedded, weight: Callable[[int], float] | None) -> float:
        wanted: Of = self.chosen.of  # type: ignore[attr-defined]
        return dict(zip(("precision", "recall", "f1"), bertscore(output, other, weight), strict=True))[wanted]


class _MoverScoring(VectorMetric):
    paper = "MoverScore: Text Generation Evaluating with Contextualized Embeddings (Zhao et al. 2019)"

    def of_vectors(self, output: Embedded, other: Embedded, weight: Callable[[int], float] | None) -> float:
        return moverscore(output, other, weight)


@metrics.register
class BertScore(_BertScoring):
    """BERTScore by an encoder, not rescaled with its baselines. See `Options`."""

    name = "bertscore"
    about = "BERTScore: tokens matched by their vectors in an encoder, not rescaled (weights needed)"
    extra = "torch"

    class Options(parts.Options):
        model: str = option("roberta-large", _ENCODER, min_length=1)
        of: Of = option("f1", "F1, precision or recall.")
        idf: bool = option(False, _IDF)
        layer: int | None = option(None, _OF_ENCODER, ge=1)
        against: Against = against()


@metrics.register
class BertScoreLM(_BertScoring):
    """BERTScore's matching over the hidden states of a causal model; each text is read up to 3,000 characters."""

    name = "bertscore-lm"
    about = "BERTScore's matching over the hidden states of a local language model (ours)"
    paper = f"after {_BertScoring.paper}"

    class Options(parts.Options):
        model: str | None = option(None, MODEL, min_length=1)
        of: Of = option("f1", "F1, precision or recall.")
        idf: bool = option(False, _IDF)
        layer: int | None = option(None, _OF_LM, ge=1)
        against: Against = against()


@metrics.register
class MoverScore(_MoverScoring):
    """MoverScore by an encoder, over single tokens. See `Options`."""

    name = "moverscore"
    about = "MoverScore: the least work that moves an output's vectors to the other text's (weights needed)"
    extra = "torch"

    class Options(parts.Options):
        model: str = option("distilbert-base-uncased", _ENCODER, min_length=1)
        idf: bool = option(True, _IDF)
        layer: int | None = option(None, _OF_ENCODER, ge=1)
        against: Against = against()


@metrics.register
class MoverScoreLM(_MoverScoring):
    """MoverScore over the hidden states of a causal model; each text is read up to 3,000 characters."""

    name = "moverscore-lm"
    about = "MoverScore over the hidden states of a local language model (ours)"
    paper = f"after {_MoverScoring.paper}"

    class Options(parts.Options):
        model: str | None = option(None, MODEL, min_length=1)
        idf: bool = option(True, _IDF)
        layer: int | None = option(None, _OF_LM, ge=1)
        against: Against = against()
