"""The trained reader: the weights that are shipped, on a real small model; and when its score is a reading."""

import hashlib
import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from planted import PlantedReader, guessing, planted_labels

import judgesmith as js
from judgesmith.errors import ModelError
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.files import installed
from judgesmith.programs.readings import trained
from judgesmith.programs.readings.bindings import opening
from judgesmith.programs.readings.bindings.opening import Opened
from judgesmith.programs.readings.judge import ModelReadings
from judgesmith.programs.readings.kinds import TRAINED
from judgesmith.programs.readings.passages import INSTRUCTIONS, Text
from judgesmith.testing.scripted import scripted_models

FOLDER = Path(str(files("judgesmith.programs.readings") / "trained"))
SOURCE = (
    "The committee met on Tuesday and decided, after long debate, "
    "to postpone the vote on the new budget until March."
)
GOOD, WRONG = (
    "The committee put off the budget vote until March.",
    "Committee the budget blue were March eat it it it.",
)

#: What the program that trained the weights says of the good one, in torch and bfloat16.
AS_TRAINED = {"overall": 45.70, "fluency": 51.05}


def test_the_shipped_weights_are_those_of_the_card() -> None:
    weights = (FOLDER / f"{trained.NAME}.gguf").read_bytes()
    card = json.loads((FOLDER / f"{trained.NAME}.json").read_text(encoding="utf-8"))[
        "card"
    ]
    assert hashlib.sha256(weights).hexdigest() in card["reader"]
    assert len(weights) < 5_000_000
    assert all(card["sets"].values())


@pytest.mark.model
@pytest.mark.skipif(
    not installed(trained.BASE), reason="the model is not on this machine"
)
@pytest.mark.parametrize("aspect", ["overall", "fluency", "factual_consistency"])
def test_it_tells_good_from_bad(aspect: str) -> None:
    asked = INSTRUCTIONS["summarization"]
    good, wrong, long = (
        trained.trained_score(Text(SOURCE, output, instruction=asked), aspect).score
        for output in (GOOD, WRONG, GOOD * 40)
    )
    assert good > wrong + 20
    if aspect in AS_TRAINED:
        assert good == pytest.approx(AS_TRAINED[aspect], abs=3)
    assert -100 < long < good
    book = Text(SOURCE * 20_000, GOOD, "c " * 5_000, asked, "r " * 5_000)
    read = trained.trained_score(book, "a" * 5_000)
    assert -100 < read.score < 200  # cut to what the model takes, which is said
    assert read.shares["source"] < 0.001
    assert {"context", "reference"} <= set(read.shares)


@pytest.fixture
def lm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A model whose readings are planted. The trained reader knows the length of an output alone."""
    monkeypatch.setitem(
        opening._opened, "test/model at None", Opened(PlantedReader(), "a1b2" * 16)
    )
    monkeypatch.setattr(trained, "open_trained", lambda: None)
    monkeypatch.setattr(
        trained,
        "trained_score",
        lambda text, aspect: trained.Trained(float(len(text.judged)), {}),
    )
    with scripted_models() as make:
        yield make(guessing())[0]


def test_its_score_has_a_weight_until_there_are_labels(lm: Any, tmp_path: Path) -> None:
    judge = Judge(ModelReadings("overall"), lm=lm)
    judge.method.begin(lambda: judge.lm)
    assert trained.BASE in judge.method.models()
    short, long = (
        judge.score("A source.", output)
        for output in ("w1 w2", "w1 w2" + " " * 90 + "w3")
    )
    assert (
        long.details.readings["trained reader"]
        > short.details.readings["trained reader"]
    )
    assert "learnt from ratings of other tasks" in long.explanation
    judge.save(tmp_path / "judge.json")
    again = js.load(tmp_path / "judge.json", lm=lm)
    assert again.score("A source.", "w1 w2").percent == pytest.approx(short.percent)
    labels = planted_labels(documents=20, seed=3)
    compiled, fresh = (
        js.compile(one, labels, lm=lm) for one in (again, ModelReadings("overall"))
    )
    assert TRAINED not in compiled.method.head.weights
    assert not compiled.method.models()
    assert (
        compiled.report.zero_shot.q == fresh.report.zero_shot.q
    )  # the model's own score, not experience's


def test_a_judge_does_without_it_where_it_cannot_be_had(
    lm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise ModelError("no such model")

    monkeypatch.setattr(trained, "open_trained", refuse)
    judge = Judge(ModelReadings("overall"), lm=lm)
    judge.method.begin(lambda: judge.lm)
    assert judge.method.head is not None
    assert TRAINED not in judge.method.head.weights
    assert judge.score("A source.", "w1 w2").failure is None
