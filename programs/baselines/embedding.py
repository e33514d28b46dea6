"""Similarity of embeddings, by a model that fastembed runs (`pip install 'judgesmith[embedding]'`)."""

from __future__ import annotations

import difflib
import importlib
import itertools
import json
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from ... import parts
from ...errors import ModelError, OptionError
from ...signatures.values import Verdict
from ..metrics import PREFIX, Metric, output_of
from ..models.files import models_dir
from ..registry import metrics
from .compared import needed, one_line, others_of, sendable

Vector = npt.NDArray[np.float64]
Encoder = Callable[[Sequence[str]], Iterable[npt.ArrayLike]]  # texts -> a vector of one length for each
#: 50 languages and 0.2 GB; it reads the first 128 tokens of a text.
EMBEDDING_MODEL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
EMBEDDING_VARIABLE = "JUDGESMITH_EMBEDDING_MODEL"
_ROWS = 64  # rows whose texts are encoded together
_KEPT = 4096  # vectors that are kept, since many outputs have the same source
_CHARACTERS = 32_000  # of a batch, padded: what a model needs of memory grows with it
_PATIENCE = 8.0  # seconds to wait for the hub
_ONNX = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx", "onnx/model_quantized.onnx", "model_quantized.onnx")


@metrics.register
class EmbeddingSimilarity(Metric):
    """The cosine of two texts' embeddings as a judge: in [-1, 1], 1 = alike to the model; percent is its positive part.

    A row without a text to compare with has no score. A model reads only the beginning of a long text (the default one
    128 tokens). encoder: any function from texts to vectors, in place of a model. against: what the output is compared
    with, the nearest of its references or the source.
    """

    name = "embedding"
    about = "cosine of the embeddings of output and reference (fastembed)"
    extra = "embedding"
    against: ClassVar[Literal["reference", "source"]] = "reference"

    class Options(parts.Options):
        model: str | None = parts.option(
            None,
            "A name that fastembed knows, or a folder with an ONNX model and its tokenizer; none takes "
            f"{EMBEDDING_VARIABLE}, or a multilingual one.",
            min_length=1,
        )

    def __init__(self, *, encoder: Encoder | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.encoder = encoder

    @property
    def model_name(self) -> str:
        chosen: Any = self.chosen
        return chosen.model or os.environ.get(EMBEDDING_VARIABLE) or EMBEDDING_MODEL

    @property
    def description(self) -> str:
        what = "a function" if self.encoder is not None else self.model_name
        return f"cosine of the embeddings of output and {self.against} ({what})"

    @cached_property
    def _encode(self) -> Encoder:
        return self.encoder or fastembed_encoder(self.model_name)

    def score_many(self, rows: Iterable[Any]) -> Iterator[Verdict]:
        """One verdict per row, in order. rows: mappings or objects with output and reference (or references) or source.

        Raises MissingExtraError where the package is not installed, ModelError where the model is not there and cannot
        be fetched, OptionError for a row without a text `output`, for an unknown model and for an encoder that
        does not give one vector per text.
        """
        self._encode  # noqa: B018  a missing file is reported before the first row
        known: dict[str, Vector] = {}
        source = iter(rows)
        while batch := [
            (sendable(output_of(row)), others_of(row, self.against)) for row in itertools.islice(source, _ROWS)
        ]:
            if len(known) > _KEPT:
                known.clear()
            new = dict.fromkeys(t for output, others in batch if output and others for t in (output, *others))
            self._add([text for text in new if text not in known], known)
            for output, others in batch:
                yield self._verdict(output, others, known)

    def _add(self, texts: list[str], known: dict[str, Vector]) -> None:
        if not texts:
            return
        try:
            vectors = [np.asarray(vector, dtype=np.float64) for vector in self._encode(texts)]
        except (TypeError, ValueError) as error:
            raise OptionError(f"the encoder of {PREFIX}{self.name} gave no vectors of numbers ({error})") from None
        if len(vectors) != len(texts) or any(v.ndim != 1 or v.shape != vectors[0].shape for v in vectors):
            raise OptionError(
                f"the encoder of {PREFIX}{self.name} must give one vector of one length for each of {len(texts)} "
                f"texts; it gave {len(vectors)} of shapes {sorted({v.shape for v in vectors})[:3]}"
            )
        known.update(zip(texts, vectors, strict=True))

    def _verdict(self, output: str, others: Sequence[str], known: Mapping[str, Vector]) -> Verdict:
        if not others:
            return Verdict.failed(f"no {self.against} to compare with")
        if not output:
            return Verdict(score=0.0, percent=0.0)  # an empty output is a bad text, not a failure
        cosines = [_cosine(known[output], known[other]) for other in others]
        value = max(cosines, key=lambda c: -math.inf if math.isnan(c) else c)
        if math.isnan(value):
            return Verdict.failed("the embedding model gave no direction for this text")
        return Verdict(score=value, percent=100.0 * max(value, 0.0))


@metrics.register
class SourceSimilarity(EmbeddingSimilarity):
    """`EmbeddingSimilarity` of output and source."""

    name = "embedding-source"
    about = "cosine of the embeddings of output and source (fastembed); needs no reference"
    against = "source"


def _cosine(a: Vector, b: Vector) -> float:
    """In [-1, 1]; NaN where a vector has no direction."""
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    if not math.isfinite(length) or length == 0.0:
        return math.nan
    return min(max(float(a @ b) / length, -1.0), 1.0)


def fastembed_encoder(model: str) -> Encoder:
    """A model that fastembed knows by name, fetched when it is first used, or one in a folder.

    Raises MissingExtraError, OptionError for a name or a folder that is none, ModelError where the model cannot be
    fetched or loaded.
    """
    fastembed = needed("fastembed", EmbeddingSimilarity)
    needed("loguru", EmbeddingSimilarity).logger.disable("fastembed")  # our errors report what goes wrong
    folder = Path(model).expanduser()
    try:
        text_embedding = _in_folder(fastembed, folder) if folder.is_dir() else _by_name(fastembed, model)
    except (OptionError, ModelError):
        raise
    except Exception as error:  # onnxruntime and tokenizers raise whatever they like for a damaged file
        raise ModelError(f"the embedding model {model} cannot be loaded: {one_line(error)}") from None

    def encode(texts: Sequence[str]) -> Iterator[npt.ArrayLike]:
        result: dict[int, npt.ArrayLike] = {}
        for batch in _batches(texts):
            given = [texts[i] for i in batch]
            result.update(zip(batch, text_embedding.embed(given, batch_size=len(given)), strict=True))
        return (result[i] for i in range(len(texts)))

    return encode


def _batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """Places of texts, the short ones first: a batch is padded to its longest text."""
    batch: list[int] = []
    for i in sorted(range(len(texts)), key=lambda i: len(texts[i])):
        if batch and (len(batch) + 1) * len(texts[i]) > _CHARACTERS:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _in_folder(fastembed: Any, folder: Path) -> Any:
    """A model in the form that sentence-transformers saves, exported to ONNX."""
    file = next((name for name in _ONNX if (folder / name).is_file()), None)
    if file is None or not (folder / "tokenizer.json").is_file():
        lacking = "tokenizer.json" if file else " or ".join(_ONNX[:2])
        raise OptionError(
            f"{folder} has no {lacking}: an embedding model's folder needs both; `optimum-cli export onnx` writes one"
        )
    description = importlib.import_module("fastembed.common.model_description")
    pooling = description.PoolingType.MEAN
    saved = folder / "1_Pooling" / "config.json"
    if saved.is_file():
        settings = json.loads(saved.read_text(encoding="utf-8"))
        pooling = description.PoolingType.CLS if settings.get("pooling_mode_cls_token") else pooling
    name = str(folder.resolve())
    if name.casefold() not in _known(fastembed):
        fastembed.TextEmbedding.add_custom_model(
            name, pooling=pooling, normalization=True, sources=description.ModelSource(url="file"), dim=1,
            model_file=file,
        )  # fmt: skip  # source and dimension have to be named, and are not looked at for a folder
    return fastembed.TextEmbedding(name, specific_model_path=name)


def _known(fastembed: Any) -> dict[str, dict[str, Any]]:
    """The models that fastembed knows, by their names in lower case, which it takes too."""
    return {str(known["model"]).casefold(): known for known in fastembed.TextEmbedding.list_supported_models()}


def _by_name(fastembed: Any, model: str) -> Any:
    known = _known(fastembed)
    if model.casefold() not in known:
        near = difflib.get_close_matches(model.casefold(), known, n=3, cutoff=0.4)
        raise OptionError(
            f"the embedding model {model!r} is neither a folder nor one of the {len(known)} models that fastembed "
            f"knows; near to it are {', '.join(known[n]['model'] for n in near) or EMBEDDING_MODEL}"
        )
    folder = os.environ.get("FASTEMBED_CACHE_PATH")
    if not folder:  # its own default is the system's temporary folder
        folder = str(models_dir() / "embedding")
    try:
        return fastembed.TextEmbedding(model, cache_dir=folder, local_files_only=True)
    except ValueError:
        problem = hub_problem(known[model.casefold()]["sources"]["hf"])
        if problem is not None:
            raise ModelError(
                f"the embedding model {model} is not on this machine and cannot be fetched ({problem}); fetch it where "
                f"there is a network, or set {EMBEDDING_VARIABLE} to a folder that has one"
            ) from None
        return fastembed.TextEmbedding(model, cache_dir=folder)


def hub_problem(repository: str) -> str | None:
    """Why a model cannot be fetched, None if it can. fastembed itself would try for most of a minute. In a thread,
    because looking up a host's name has no time limit of its own."""
    result: list[str | None] = [f"no answer in {_PATIENCE:g} s"]

    def ask() -> None:
        try:
            importlib.import_module("huggingface_hub").HfApi().model_info(repository, timeout=_PATIENCE / 2)
            result[0] = None
        except Exception as error:  # of the connection, of the server's answer, or that the hub was switched off
            result[0] = one_line(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PATIENCE)
    return result[0]
