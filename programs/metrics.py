"""What a user had before: metrics that compare an output with its reference, as judges that call no language model.

rouge-score and sacrebleu are imported when a metric is first used; they come with `pip install 'judgesmith[metrics]'`,
and fastembed, which runs embedding models, with `pip install 'judgesmith[embedding]'`.
"""

from __future__ import annotations

import difflib
import importlib
import itertools
import json
import logging
import math
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from .. import parts
from ..errors import MissingExtraError, ModelError, OptionError
from ..signatures.values import Verdict
from .models.files import models_dir
from .registry import metrics

PREFIX = "metric/"
INSTALL_EMBEDDING = "pip install 'judgesmith[embedding]'"
Vector = npt.NDArray[np.float64]
Encoder = Callable[[Sequence[str]], Iterable[npt.ArrayLike]]  # texts -> a vector of one length for each
Measure = Callable[[str, Sequence[str]], float]  # output, references -> share of the best value, in [0, 1]


class Metric:
    """Base of all metrics: judges with `score` and `score_many` that call no language model. A subclass registers with
    `@metrics.register` and declares itself.

    Attributes: name, about, paper; Options and `chosen`, its options; extra, the extra of judgesmith that it needs, ""
    for none; description, what it is in one line.
    """

    name: ClassVar[str] = ""
    about: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    aliases: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = ""

    class Options(parts.Options):
        """None."""

    def __init__(self, **options: Any) -> None:
        self.chosen = parts.read_options(type(self).Options, options, f"{PREFIX}{self.name}")

    @property
    def description(self) -> str:
        return self.about

    def score(
        self,
        output: str,
        reference: str | Sequence[str] | None = None,
        *,
        source: str = "",
        context: str | None = None,
    ) -> Verdict:
        """One output. `context` is taken as a judge takes it and not looked at."""
        row = {"output": output, "reference": reference, "source": source}
        return next(iter(self.score_many([row])))

    def score_many(self, rows: Iterable[Any]) -> Iterator[Verdict]:
        """One verdict per row, in order. rows: mappings or objects with output and reference (or references) or source.

        Raises MissingExtraError where a package is not installed, OptionError for a row without a text `output`.
        """
        raise NotImplementedError


class ReferenceMetric(Metric):
    """A metric whose values are shares of the best one: in [0, 1], 1 = equal to the reference.

    A row without a reference has no score, with a reason. Texts are compared with all of a row's `references` if it has
    them, or with its `reference`. A subclass makes the measure.
    """

    extra = "metrics"

    def make(self) -> Measure:
        """The measure; its package is imported here. Raises ImportError."""
        raise NotImplementedError

    @cached_property
    def _measure(self) -> Measure:
        try:
            return self.make()
        except ImportError as error:
            raise MissingExtraError(
                f"{PREFIX}{self.name} needs a package ({error}): pip install 'judgesmith[{self.extra}]'"
            ) from None

    def score_many(self, rows: Iterable[Any]) -> Iterator[Verdict]:
        measure = self._measure  # a missing package is reported before the first row
        for row in rows:
            output, given = output_of(row), cell(row, "references") or cell(row, "reference")
            references = [text for text in ([given] if isinstance(given, str) else given or ()) if text.strip()]
            if not references:
                yield Verdict.failed("no reference to compare with")
                continue
            value = measure(output, references)
            finite = math.isfinite(value)
            yield Verdict(score=value, percent=100.0 * value) if finite else Verdict.failed("no finite value")


class _Rouge(ReferenceMetric):
    paper = "ROUGE: A Package for Automatic Evaluation of Summaries (Lin 2004)"

    def make(self) -> Measure:
        from rouge_score.rouge_scorer import RougeScorer

        logging.getLogger("absl").setLevel(logging.ERROR)
        scorer = RougeScorer([self.name], use_stemmer=True)

        def measure(output: str, references: Sequence[str]) -> float:
            return max(float(scorer.score(reference, output)[self.name].fmeasure) for reference in references)

        return measure


@metrics.register
class Rouge1(_Rouge):
    name = "rouge1"
    about = "ROUGE-1 F, Porter stemming, best reference (rouge-score)"


@metrics.register
class Rouge2(_Rouge):
    name = "rouge2"
    about = "ROUGE-2 F, Porter stemming, best reference (rouge-score)"


@metrics.register
class RougeL(_Rouge):
    name = "rougeL"
    about = "ROUGE-L F, Porter stemming, best reference (rouge-score)"


class _SacreBleu(ReferenceMetric):
    def sentence(self) -> Any:
        """The metric of sacrebleu."""
        raise NotImplementedError

    def make(self) -> Measure:
        metric = self.sentence()

        def measure(output: str, references: Sequence[str]) -> float:
            return min(float(metric.sentence_score(output, list(references)).score) / 100.0, 1.0)

        return measure


@metrics.register
class Bleu(_SacreBleu):
    name = "bleu"
    about = "sentence BLEU, 13a tokens, exponential smoothing, all references (sacrebleu)"
    paper = "BLEU: a Method for Automatic Evaluation of Machine Translation (Papineni et al. 2002)"

    def sentence(self) -> Any:
        from sacrebleu.metrics.bleu import BLEU

        # Of one sentence: smoothed, and up to the longest n-gram that it has, as sacrebleu's own sentence scores are.
        return BLEU(effective_order=True)


@metrics.register
class Chrf(_SacreBleu):
    name = "chrf"
    about = "sentence chrF2, best reference (sacrebleu)"
    paper = "chrF: character n-gram F-score for automatic MT evaluation (Popović 2015)"

    def sentence(self) -> Any:
        from sacrebleu.metrics.chrf import CHRF

        return CHRF()


# Embeddings ----------------------------------------------------------------------------------------------------------

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
        while batch := [self._texts(row) for row in itertools.islice(source, _ROWS)]:
            if len(known) > _KEPT:
                known.clear()
            new = dict.fromkeys(t for output, others in batch if output and others for t in (output, *others))
            self._add([text for text in new if text not in known], known)
            for output, others in batch:
                yield self._verdict(output, others, known)

    def _texts(self, row: Any) -> tuple[str, tuple[str, ...]]:
        """The output and what it is compared with, as text that can be sent: "" and () where there is none."""
        output = output_of(row)
        given = cell(row, "source") if self.against == "source" else cell(row, "references") or cell(row, "reference")
        others = [given] if isinstance(given, str) else list(given or ())
        return sendable(output), tuple(sendable(text) for text in others if text.strip())

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


def sendable(text: str) -> str:
    """A text without lone surrogates, which broken JSON holds and no tokenizer takes; "" where it is blank."""
    return text.encode("utf-8", "replace").decode() if text.strip() else ""


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
    try:
        fastembed: Any = importlib.import_module("fastembed")
        importlib.import_module("loguru").logger.disable("fastembed")  # our errors report what goes wrong
    except ImportError as error:
        raise MissingExtraError(f"{PREFIX}embedding needs fastembed ({error}): {INSTALL_EMBEDDING}") from None
    folder = Path(model).expanduser()
    try:
        text_embedding = _in_folder(fastembed, folder) if folder.is_dir() else _by_name(fastembed, model)
    except (OptionError, ModelError):
        raise
    except Exception as error:  # onnxruntime and tokenizers raise whatever they like for a damaged file
        raise ModelError(f"the embedding model {model} cannot be loaded: {_line(error)}") from None

    def encode(texts: Sequence[str]) -> Iterator[npt.ArrayLike]:
        found: dict[int, npt.ArrayLike] = {}
        for batch in _batches(texts):
            given = [texts[i] for i in batch]
            found.update(zip(batch, text_embedding.embed(given, batch_size=len(given)), strict=True))
        return (found[i] for i in range(len(texts)))

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
    there = next((name for name in _ONNX if (folder / name).is_file()), None)
    if there is None or not (folder / "tokenizer.json").is_file():
        lacking = "tokenizer.json" if there else " or ".join(_ONNX[:2])
        raise OptionError(
            f"{folder} has no {lacking}: an embedding model's folder needs both; `optimum-cli export onnx` writes one"
        )
    description = importlib.import_module("fastembed.common.model_description")
    pooling = description.PoolingType.MEAN
    saved = folder / "1_Pooling" / "config.json"
    if saved.is_file():
        told = json.loads(saved.read_text(encoding="utf-8"))
        pooling = description.PoolingType.CLS if told.get("pooling_mode_cls_token") else pooling
    name = str(folder.resolve())
    if not any(
        known["model"].casefold() == name.casefold() for known in fastembed.TextEmbedding.list_supported_models()
    ):
        fastembed.TextEmbedding.add_custom_model(
            name, pooling=pooling, normalization=True, sources=description.ModelSource(url="file"), dim=1,
            model_file=there,
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
    found: list[str | None] = [f"no answer in {_PATIENCE:g} s"]

    def ask() -> None:
        try:
            importlib.import_module("huggingface_hub").HfApi().model_info(repository, timeout=_PATIENCE / 2)
            found[0] = None
        except Exception as error:  # of the connection, of the server's answer, or that the hub was switched off
            found[0] = _line(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PATIENCE)
    return found[0]


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


# By name -------------------------------------------------------------------------------------------------------------


def reference_metric(name: str) -> Metric:
    """A metric by its name, with or without `metric/`, whatever its case. After a colon stand its options: the first by
    its value alone, others as NAME=VALUE (`embedding:MODEL`, `bertscore:roberta-large,idf=yes`). Raises OptionError."""
    plain = name.removeprefix(PREFIX)
    kind, colon, value = plain.partition(":")
    known = {one.casefold(): part for one, part in metrics.parts().items()}
    part: type[Metric] | None = known.get(kind.casefold())
    if part is None or (colon and not part.Options.model_fields):
        there = ", ".join(PREFIX + one for one in metrics.names())
        raise OptionError(f"there is no metric {PREFIX}{plain}; there are {there}")
    if not colon:
        return part()
    fields = part.Options.model_fields
    first = next(iter(fields))
    if not value.strip():
        raise OptionError(f"{PREFIX}{plain} names no {first}; write {PREFIX}{kind}:{first.upper()}")
    chosen: dict[str, Any] = {}
    for text in _OPTION.split(value) if len(fields) > 1 else [f"{first}={value}"]:
        option, equals, given = (piece.strip() for piece in text.partition("="))
        if not equals or (option not in fields and not chosen):
            option, given = first, text.strip()
        chosen[option] = parts.from_text(fields[option], given) if option in fields else given
    return part(**chosen)


#: The comma before the next NAME=VALUE.
_OPTION = re.compile(r",(?=\s*[a-z_]+\s*=)")


def cell(row: Any, name: str) -> Any:
    """A row's text by its name, whether the row is a mapping or an object; None where it has none."""
    return row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)


def output_of(row: Any) -> str:
    """The text that is judged. Raises OptionError where there is none."""
    output = cell(row, "output")
    if not isinstance(output, str):
        raise OptionError(f"a row to be judged needs a text 'output'; got {type(output).__name__}")
    return output
