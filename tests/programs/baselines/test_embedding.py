"""Similarity of embeddings: by hand, with models that are not on this machine, in a folder, or unknown."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgesmith.errors import MissingExtraError, ModelError, OptionError
from judgesmith.programs.baselines import embedding
from judgesmith.programs.baselines.embedding import EMBEDDING_MODEL, EmbeddingSimilarity, SourceSimilarity
from judgesmith.programs.metrics import (
    Metric,
    reference_metric,
)
from judgesmith.testing import MetricContract


class Letters:
    """An encoder whose vector counts the letters a, b and c of a text; `batches` is what it was asked."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.batches.append(list(texts))
        return [[float(text.count(letter)) for letter in "abc"] for text in texts]


def test_the_cosine_by_hand() -> None:
    metric = EmbeddingSimilarity(encoder=Letters())
    # (3, 4, 0) . (3, 0, 4) = 9, lengths 5 and 5: 9 / 25
    assert metric.score("aaabbbb", "aaacccc").score == pytest.approx(0.36)
    assert metric.score("aaabbbb", "aaacccc").percent == pytest.approx(36)
    assert metric.score("a", "b").score == 0
    assert metric.score("abc", "cba").score == pytest.approx(1)
    # the nearest of several: (1, 1, 0) with (1, 0, 0) is 1 / sqrt 2, with (0, 0, 1) it is 0
    assert metric.score("ab", ["c", "a"]).score == pytest.approx(math.sqrt(0.5))


def test_a_cosine_below_zero_is_a_score_but_no_percent() -> None:
    metric = EmbeddingSimilarity(encoder=lambda texts: [[1.0] if text == "yes" else [-2.0] for text in texts])
    verdict = metric.score("yes", "no")
    assert (verdict.score, verdict.percent, verdict.failure) == (-1.0, 0.0, None)


def test_the_source_takes_the_place_of_the_reference() -> None:
    rows: list[Any] = [
        {"output": "a", "source": "a", "reference": "b"},
        SimpleNamespace(output="a", source="b", reference="a"),
        {"output": "a", "reference": "a"},
    ]
    found = list(SourceSimilarity(encoder=Letters()).score_many(rows))
    assert [v.score for v in found[:2]] == [1, 0]
    assert found[2].failure == "no source to compare with" and math.isnan(found[2].score)


def test_rows_without_a_number() -> None:
    rows: list[Any] = [
        {"output": "a", "references": ["b", "a"], "reference": "c"},
        {"output": "a"},
        {"output": "a", "reference": " "},
        {"output": " ", "reference": "a"},
        {"output": "a", "reference": "no letter of those"[:2]},
    ]
    found = list(EmbeddingSimilarity(encoder=Letters()).score_many(rows))
    assert found[0].score == 1
    assert [v.failure for v in found[1:3]] == ["no reference to compare with"] * 2
    assert found[3].score == 0 and found[3].failure is None
    assert found[4].failure == "the embedding model gave no direction for this text"


def test_a_text_is_encoded_once() -> None:
    encoder = Letters()
    rows = [{"output": "a" * (n + 1), "source": "abc"} for n in range(100)]
    assert len(list(SourceSimilarity(encoder=encoder).score_many(rows))) == 100
    asked = [text for batch in encoder.batches for text in batch]
    assert len(asked) == len(set(asked)) == 101


@settings(max_examples=30)
@given(st.lists(st.tuples(st.text(max_size=6), st.text(max_size=6)), max_size=8))
def test_any_text_has_a_cosine_or_a_reason(pairs: list[tuple[str, str]]) -> None:
    def encoder(texts: Sequence[str]) -> list[list[float]]:
        return [[float(len(text.encode())), text.encode()[0] - 100.0] for text in texts]

    metric = EmbeddingSimilarity(encoder=encoder)
    for verdict in metric.score_many({"output": a + "\ud800", "reference": b} for a, b in pairs):
        assert (verdict.failure is None and -1 <= verdict.score <= 1) or verdict.failure


@pytest.mark.parametrize(
    "encoder",
    [lambda texts: [[1.0]], lambda texts: [[1.0], [1.0, 2.0]], lambda texts: [1.0, 2.0], lambda texts: ["x", "y"]],
)
def test_an_encoder_that_does_not_fit_is_said(encoder: Callable[[Sequence[str]], Any]) -> None:
    with pytest.raises(OptionError, match="the encoder of metric/embedding"):
        EmbeddingSimilarity(encoder=encoder).score("a", "b")


def test_the_model_is_named_or_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGESMITH_EMBEDDING_MODEL", raising=False)
    plain, source = reference_metric("metric/embedding"), reference_metric("metric/Embedding-Source:some/Name:x")
    assert isinstance(plain, EmbeddingSimilarity) and isinstance(source, SourceSimilarity)
    assert (plain.against, plain.model_name) == ("reference", EMBEDDING_MODEL)
    assert (source.against, source.model_name) == ("source", "some/Name:x")
    monkeypatch.setenv("JUDGESMITH_EMBEDDING_MODEL", "folder")
    assert plain.model_name == "folder" and source.model_name == "some/Name:x"
    assert "output and source (some/Name:x)" in source.description
    with pytest.raises(OptionError, match="names no model"):
        reference_metric("metric/embedding:")


@pytest.fixture
def fastembed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """fastembed as far as it is used: models that are not on this machine unless `here`, and what was asked of it."""
    told: dict[str, Any] = {"here": False, "asked": [], "custom": []}

    class TextEmbedding:
        @classmethod
        def list_supported_models(cls) -> list[dict[str, Any]]:
            return [
                {"model": name, "sources": {"hf": f"{name}-onnx"}}
                for name in (EMBEDDING_MODEL, "org/other", *told["custom"])
            ]

        @classmethod
        def add_custom_model(cls, name: str, **options: Any) -> None:
            told["custom"].append(name)
            told["options"] = options

        def __init__(self, name: str, **options: Any) -> None:
            told["asked"].append((name, options))
            if options.get("local_files_only") and not told["here"]:
                raise ValueError("not there")

        def embed(self, texts: list[str], batch_size: int) -> Any:
            return iter(Letters()(texts))

    module, description, loguru = ModuleType("fastembed"), ModuleType("description"), ModuleType("loguru")
    module.TextEmbedding = TextEmbedding  # type: ignore[attr-defined]
    description.PoolingType = SimpleNamespace(MEAN="mean", CLS="cls")  # type: ignore[attr-defined]
    description.ModelSource = SimpleNamespace  # type: ignore[attr-defined]
    loguru.logger = SimpleNamespace(disable=lambda name: None)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fastembed", module)
    monkeypatch.setitem(sys.modules, "fastembed.common.model_description", description)
    monkeypatch.setitem(sys.modules, "loguru", loguru)
    monkeypatch.setenv("JUDGESMITH_MODELS", str(tmp_path / "models"))
    monkeypatch.delenv("FASTEMBED_CACHE_PATH", raising=False)
    monkeypatch.delenv("JUDGESMITH_EMBEDDING_MODEL", raising=False)
    return told


def test_a_hub_that_cannot_be_reached_is_said_in_one_line(
    fastembed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class HfApi:
        def model_info(self, repository: str, timeout: float) -> None:
            asked.append(repository)
            raise OSError("no route\nto the host")

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(HfApi=HfApi))  # type: ignore[arg-type]
    says = r"^the embedding model sen.* is not on this .* \(no route to the host\); .*JUDGESMITH_EMBEDDING_MODEL"
    with pytest.raises(ModelError, match=says):
        list(reference_metric("embedding").score_many([]))
    assert asked == [f"{EMBEDDING_MODEL}-onnx"]
    assert all(options["local_files_only"] for _, options in fastembed["asked"])  # nothing was fetched
    HfApi.model_info = lambda *_, **__: None  # type: ignore[assignment]
    assert reference_metric("embedding").score("a", "a").score == 1
    assert "local_files_only" not in fastembed["asked"][-1][1]


def test_a_hub_that_never_answers_is_not_waited_for(fastembed: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    silent = SimpleNamespace(model_info=lambda *_, **__: release.wait(60))
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(HfApi=lambda: silent))  # type: ignore[arg-type]
    monkeypatch.setattr(embedding, "_PATIENCE", 0.05)
    with pytest.raises(ModelError, match=r"no answer in 0\.05 s"):
        list(reference_metric("embedding").score_many([]))
    release.set()


def test_an_unknown_model_names_its_neighbours(fastembed: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=r"'org/othr' is neither a folder nor one of the 2 .* org/other"):
        list(reference_metric("embedding:org/othr").score_many([]))


def test_a_folder_with_a_model(fastembed: dict[str, Any], tmp_path: Path) -> None:
    metric = reference_metric(f"embedding:{tmp_path}")
    with pytest.raises(OptionError, match=r"has no model\.onnx or onnx/model\.onnx"):
        metric.score("a", "a")
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model.onnx").write_bytes(b"")
    with pytest.raises(OptionError, match=r"has no tokenizer\.json"):
        metric.score("a", "a")
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert metric.score("aab", "baa").score == pytest.approx(1)
    assert reference_metric(f"embedding-source:{tmp_path}").score("a", source="b").score == 0  # registered only once
    assert fastembed["custom"] == [str(tmp_path.resolve())]
    assert (fastembed["options"]["pooling"], fastembed["options"]["model_file"]) == ("cls", "onnx/model.onnx")
    (tmp_path / "1_Pooling" / "config.json").write_text("{")
    with pytest.raises(ModelError, match="cannot be loaded"):
        reference_metric(f"embedding:{tmp_path}").score("a", "a")


def test_a_missing_fastembed_names_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'judgesmith\[embedding\]'"):
        list(reference_metric("embedding").score_many([{"output": "x", "reference": "x"}]))


class TestEmbedding(MetricContract):
    @pytest.fixture(params=[EmbeddingSimilarity, SourceSimilarity])
    def metric(self, request: pytest.FixtureRequest) -> Metric:
        made: Metric = request.param(encoder=Letters())
        return made
