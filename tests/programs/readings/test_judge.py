"""The judge that reads, with a reader whose every answer is known."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from planted import PlantedReader, guessing

from judgesmith.compiling.run import Setup
from judgesmith.errors import ArtifactError, ModelError, OptionError
from judgesmith.programs import artifact, loading
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.outcome import Sureness
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.readings import kinds, saying
from judgesmith.programs.readings.bindings import opening
from judgesmith.programs.readings.bindings.opening import Opened
from judgesmith.programs.readings.head import LinearHead
from judgesmith.programs.readings.judge import Contributions, ModelReadings
from judgesmith.programs.readings.reader import TokenReading
from judgesmith.running.opening import open_others
from judgesmith.signatures.values import Scale
from judgesmith.testing import JudgeContract
from judgesmith.testing.fake import own_environment
from judgesmith.testing.scripted import MakeScripted

MODEL = "a1b2" * 16
#: 5 nats more likely a word (all words against none): from 30 to 80 percent; the direct score moves a little.
HEAD = LinearHead(50.0, {"assistant.mean": (-3.0, 10.0), "direct": (50.0, 0.1)})
ROWS = [
    {"source": "A source.", "output": output}
    for output in ("w1 w2 w3 w4", "w1 w2 x3 x4", "x1 x2 x3 x4")
]


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PlantedReader:
    """The reader of the scripted model."""
    own_environment(monkeypatch, tmp_path)
    reader = PlantedReader()
    monkeypatch.setitem(opening._opened, "test/model at None", Opened(reader, MODEL))
    return reader


@pytest.fixture
def lm(scripted: MakeScripted) -> LanguageModel:
    return scripted(lambda _: "Score: 60")[0]


def fitted(
    head: LinearHead = HEAD,
    model: str = MODEL,
    *,
    lm: Any = None,
    scale: Scale | None = None,
    **given: Any,
) -> Judge:
    method = ModelReadings("fluency", **given)
    method.take(head, model)
    return Judge(method, lm=lm, scale=scale)


class TestFittedReadings(JudgeContract):
    @pytest.fixture
    def make(self) -> Callable[..., Judge]:
        return fitted


def test_until_it_is_fitted_it_is_the_direct_score(
    scripted: MakeScripted, planted: PlantedReader
) -> None:
    first, second = (scripted(guessing())[0] for _ in range(2))
    plain = Judge(DirectScorer("fluency"), lm=first).score_many(ROWS)
    ours = Judge(ModelReadings("fluency"), lm=second).score_many(ROWS)
    assert [v.percent for v in ours] == [v.percent for v in plain]
    assert planted.reads == 0


@pytest.mark.parametrize(
    ("head", "percents"),
    [
        (
            HEAD,
            [71.0, 46.0, 21.0],
        ),  # 50 + 10 (mean - -3) + .1 (60 - 50); means are -1, -3.5 and -6
        (
            LinearHead(50.0, {"assistant.mean": (-3.0, 100.0)}),
            [100.0, 0.0, 0.0],
        ),  # 250, 0 and -250, held to the scale
        (
            LinearHead(
                50.0,
                {"assistant.mean": (-3.0, 100.0)},
                limits={"assistant.mean": (-40, 10)},
            ),
            [60.0, 10.0, 10.0],
        ),
    ],
)
def test_a_score_is_the_heads_on_its_scale(
    head: LinearHead, percents: list[float], lm: LanguageModel
) -> None:
    judge = fitted(head, lm=lm)
    assert ("limits" in judge.method.fitted()["head"]) == bool(
        head.limits
    )  # fingerprints of those without stay as they were
    found = list(judge.score_many(ROWS))
    assert [v.percent for v in found] == pytest.approx(percents)
    far = (
        "far from the rows that the judge learnt from: its words are {} expected than usual; the score has no "
        "interval, and the judge's agreement with people does not hold for it"
    )
    unlike = [
        (far.format("more"),),
        (),
        (far.format("less"),),
    ]  # -50 is within 50 of -40
    assert [v.notes for v in found] == (unlike if head.limits else [(), (), ()])


def test_a_row_far_from_the_labelled_ones_has_no_interval(lm: LanguageModel) -> None:
    head = LinearHead(
        50.0, {"assistant.mean": (-3.0, 10.0)}, limits={"assistant.mean": (-6.0, 6.0)}
    )  # what it adds to the rows: 20, -5 and -30
    sure = Sureness((50.0,), (0.5,), (0.9,), (1.0,), 40, 20, (30.0, 75.0))
    judge = fitted(head, lm=lm, scale=Scale(1, 5))
    judge = judge.with_(outcome=replace(judge.outcome, sureness=sure))
    verdicts = list(judge.score_many(ROWS))
    assert [verdict.interval is None for verdict in verdicts] == [True, False, True]
    said = [len(verdict.notes) for verdict in verdicts]
    assert said == [1, 0, 1]  # one line, and nothing of an interval that is not there
    assert all("no interval" in one for v in verdicts for one in v.notes)
    assert [v.to_dict()["details"]["far"] for v in verdicts] == [
        ["assistant.mean"],
        [],
        ["assistant.mean"],
    ]


@pytest.mark.parametrize(
    ("given", "name", "error", "words"),
    [
        (
            {"model": "f" * 64},
            "test/model",
            ModelError,
            r"another model \(its SHA-256 begins ffffffffffff\).*--reader .*compile",
        ),
        (
            {"reader": "openai/gpt-4o"},
            "test/model",
            OptionError,
            "local/NAME, gguf:PATH, or ollama/NAME",
        ),
        ({}, "openai/other", ModelError, "--reader local/"),
        ({}, "ollama_chat/llama3", ModelError, "--reader ollama/llama3"),
    ],
)
def test_a_model_that_cannot_read_the_rows_is_refused(
    given: dict[str, Any],
    name: str,
    error: type[Exception],
    words: str,
    scripted: MakeScripted,
) -> None:
    lm, _ = scripted(lambda _: "Score: 60", name=name)
    with pytest.raises(error, match=words):
        list(fitted(lm=lm, **given).score_many(ROWS))


def test_without_a_weight_for_the_direct_score_nothing_is_asked(
    scripted: MakeScripted,
) -> None:
    lm, transport = scripted(lambda _: "Score: 60")
    (found,) = fitted(
        LinearHead(50.0, {"assistant.mean": (-3.0, 10.0)}), lm=lm
    ).score_many(ROWS[:1])
    assert found.percent == pytest.approx(70.0)
    assert (transport.requests, found.usage.calls) == ([], 0)


def test_contributions_add_up_in_points_of_the_users_scale(lm: LanguageModel) -> None:
    (found,) = fitted(lm=lm, scale=Scale(1, 5)).score_many(ROWS[1:2])
    details = found.details
    assert isinstance(details, Contributions)
    assert details.base == 3.0  # the middle of 1 to 5
    assert details.readings == {
        "likelihood": -0.2,
        "direct score": 0.04,
    }  # -5 and 1 percent of four points
    assert 1 + 4 * found.percent / 100 == pytest.approx(
        details.base + sum(details.readings.values())
    )


#: Surprise is unusual from 3 nats on, and the least expected word of a typical output has 3.5.
USUAL = {"assistant.q10": (-3.0, 0.0), "assistant.min": (-3.5, 0.0)}
WORDY = LinearHead(
    50.0,
    {
        "assistant.mean": (-3.0, 5.0),
        "surface.words": (1.0, 10.0),
        "direct": (70.0, 0.5),
        **USUAL,
    },
)


@pytest.mark.parametrize(
    ("head", "row", "said"),
    [  # -15 for words that are 3 nats less expected, -5 for a score of 60, +6 for a length of log 5
        (
            WORDY,
            2,
            "below a typical output. Against it: its words are less expected than usual; the model itself, "
            "asked for a score, gives less than usual. In its favour: it is longer than usual. Least expected "
            "words: “x1”, “x2”, “x3”.",
        ),
        (
            WORDY,
            0,
            "above a typical output. In its favour: its words are more expected than usual; it is longer than "
            "usual. Against it: the model itself, asked for a score, gives less than usual.",
        ),
        (
            LinearHead(50.0, {"assistant.mean": (-6.0, 5.0), **USUAL}),
            2,
            "about the same as a typical output.",
        ),
        # what speaks for an output is not named
        (
            LinearHead(50.0, {"assistant.mean": (-3.0, -5.0), **USUAL}),
            2,
            "above a typical output. In its favour: its words are less expected than usual.",
        ),
    ],
)
def test_what_moved_a_score_is_said_in_words(
    head: LinearHead, row: int, said: str, lm: LanguageModel
) -> None:
    (verdict,) = fitted(head, lm=lm).score_many(ROWS[row : row + 1])
    assert verdict.explanation == f"Scored {said}"


def test_readings_of_one_thing_are_one_reason_and_every_reading_has_words() -> None:
    names = (
        "assistant.mean",
        "assistant.q10",
        "plug.in",
        "signal.gpt4",
        "assistant.mean12",
    )
    added, above = (
        dict(zip(names, of, strict=False))
        for of in ((-9.0, 5.0, 8.0, -2.0, -3.0), (-1.0, 1.0, 2.0, -1.0))
    )
    found = saying.reasons(added, above)
    assert [(reason.points, reason.words) for reason in found] == [
        (8.0, "its in is higher than usual"),
        (-4.0, "its words are less expected than usual"),
        (-3.0, "as a whole it resembles outputs that people rated badly"),
        (-2.0, "its gpt4 is lower than usual"),
    ]


def test_words_are_whole_and_graded_by_their_least_expected_part() -> None:
    text, ends = "re-do it, naïve 東京都 x", (2, 3, 5, 8, 9, 12, 15, 18, 19, 21)
    logp = -np.array([1, 9, 1, 2, 1, 3, 4, 5, 1, 9], np.float32)
    row = kinds.RowReadings({}, {}, TokenReading(logp, logp, logp, ends))
    shades = saying.shades(row.surprise(text), (1.5, 4.0, 6.0))
    assert [(text[a:b], grade) for a, b, grade in shades] == [
        ("re-do", 3),
        ("it", 1),
        ("naïve", 1),
        ("東京", 2),
        ("x", 3),
    ]


def test_a_row_that_cannot_be_read_is_a_failed_verdict(
    lm: LanguageModel, planted: PlantedReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = planted.read

    def refusing(passage: Any, **given: Any) -> Any:
        if "x4" in passage.pieces[passage.target].text:
            raise OptionError("the row is longer than the model's window")
        return read(passage, **given)

    monkeypatch.setattr(planted, "read", refusing)
    good, *bad = fitted(lm=lm).score_many(ROWS)
    assert good.failure is None
    assert all(
        v.score != v.score and "longer than the model's window" in (v.failure or "")
        for v in bad
    )


def test_a_model_of_ollama_is_read_from_its_store(
    lm: LanguageModel,
    planted: PlantedReader,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    weights = tmp_path / "blob"
    weights.write_bytes(b"GGUF")
    names: list[str] = []

    def known(name: str) -> Path | None:
        names.append(name)
        return None if "other" in name else weights

    def reader(path: Path, *, threads: int, name: str) -> PlantedReader:
        assert path == weights
        return planted

    monkeypatch.setattr(opening, "ollama_weights", known)
    monkeypatch.setattr(opening, "EmbeddedReader", reader)
    monkeypatch.setattr(opening, "_opened", {})
    judge = fitted(
        lm=lm, reader="ollama/qwen2.5:0.5b", model=opening.file_sha256(weights)
    )
    assert [v.percent for v in judge.score_many(ROWS)] == pytest.approx(
        [71.0, 46.0, 21.0]
    )
    assert names == ["ollama/qwen2.5:0.5b"]
    with pytest.raises(ModelError, match=r"no weights of that name.*OLLAMA_MODELS"):
        list(fitted(lm=lm, reader="ollama/other").score_many(ROWS))
    assert "--reader ollama/qwen2.5:0.5b has it read" in str(
        opening.offer("ollama_chat/qwen2.5:0.5b")
    )
    assert opening.offer("ollama_chat/other") is None
    monkeypatch.setattr(opening, "_opened", {})
    monkeypatch.setattr(
        psutil, "virtual_memory", lambda: SimpleNamespace(available=7.9e9)
    )
    with weights.open("r+b") as file:
        file.truncate(6_000_000_000)
    with pytest.raises(
        ModelError,
        match=r"takes some 8\.0 GB of memory, 7\.9 GB are free; .*--reader local/",
    ):
        list(judge.score_many(ROWS))


def test_a_reader_is_not_started_as_a_model_that_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its weights would be in memory twice, and a machine without llama.cpp could not read with torch."""

    def never(name: str, *_: Any) -> None:
        raise AssertionError(f"{name} was started")

    monkeypatch.setattr("judgesmith.running.opening.open_model", never)
    open_others(Judge(ModelReadings("fluency", reader="gguf:weights.gguf")), None)


# Saved judges


def test_an_artifact_with_what_is_no_head_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "judge.json"
    fitted().save(path)
    saved = json.loads(path.read_text(encoding="utf-8"))
    artifact.read(path)
    saved["head"]["base"] = "50"
    path.write_text(json.dumps(saved), encoding="utf-8")
    with pytest.raises(ArtifactError, match="head"):
        loading.build(artifact.read(path))


# The default


@pytest.mark.parametrize(
    ("asked", "lm", "options", "method", "optimizer"),
    [
        ([None, None], "local/smollm2-135m", [], "readings", "zero-shot"),
        (
            [None, None],
            "gguf:/models/a.gguf",
            ["surface", "layers"],
            "readings",
            "zero-shot",
        ),
        (
            [None, None],
            "local/smollm2-135m",
            ["variant"],
            "active-critic",
            "random-search",
        ),
        ([None, None], "openai/gpt-4o", [], "active-critic", "random-search"),
        ([None, None], "ollama_chat/llama3", [], "active-critic", "random-search"),
        ([None, None], "openai/gpt-4o", ["reader"], "readings", "zero-shot"),
        ([None, None], None, [], "active-critic", "random-search"),
        (
            ["direct", "labeled-few-shot"],
            "local/smollm2-135m",
            [],
            "direct",
            "labeled-few-shot",
        ),
        (
            [None, "labeled-few-shot"],
            "local/smollm2-135m",
            [],
            "readings",
            "labeled-few-shot",
        ),
    ],
)
def test_the_method_that_is_taken(
    asked: tuple[str | None, str | None],
    lm: str | None,
    options: tuple[str, ...],
    method: str,
    optimizer: str,
) -> None:
    assert Setup.choose(*asked, lm, options) == Setup(method, optimizer)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(OptionError, match="nonsense"):
        Setup.choose("nonsense", None)
