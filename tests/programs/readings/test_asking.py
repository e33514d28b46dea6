"""A judge of readings whose own score is that of several forms of the question, over scripted models."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from members import form_of, noisy, quality, said

import judgesmith as js
from judgesmith.errors import ArtifactError, OptionError
from judgesmith.programs.artifact import to_dict
from judgesmith.programs.judge import Judge
from judgesmith.programs.loading import load
from judgesmith.programs.models.transport import Request, Unanswered
from judgesmith.programs.readings.judge import ModelReadings
from judgesmith.testing import JudgeContract
from judgesmith.testing.scripted import MakeScripted

FORMS = ("percent", "words")
ROW = {"source": "A source.", "output": "From here it is 70 miles."}


def asked(**given: Any) -> Judge:
    method = ModelReadings("fluency", forms=FORMS, reader="none")
    return Judge(method, **given)


class TestReadingsAskedInForms(JudgeContract):
    @pytest.fixture
    def make(self) -> Callable[..., Judge]:
        return asked


def rows(count: int = 60) -> list[dict[str, Any]]:
    """Rows whose score is half of what the model sees, and half of their length."""
    found = []
    for n in range(count):
        seen, words = 10 + n * 37 % 81, n * 23 % 40
        output = " ".join([f"From here it is {seen} miles", *["on"] * words])
        row = {"source": f"Source {n // 2}.", "output": output, "doc_id": f"d{n // 2}"}
        found.append({**row, "score": seen / 2 + words})
    return found


def test_until_it_is_compiled_it_is_the_panel(scripted: MakeScripted) -> None:
    percents = {"percent": 80, "words": 50}
    lm, _ = scripted(lambda request: said(form_of(request), percents[form_of(request)]))
    judge = asked(lm=lm)
    verdict = judge.score(**ROW)
    assert verdict.percent == 65
    assert verdict.usage.calls == 2
    assert {name: one.percent for name, one in verdict.opinions.items()} == {
        "percent": 80,
        "words": 50,
    }
    assert judge.method.cost().calls_per_row == 2
    assert sorted(judge.method.prompts(js.Item("An output."))) == ["percent", "words"]
    assert ModelReadings("fluency").cost().calls_per_row == 1


def test_the_mean_of_the_forms_is_weighed_beside_the_readings(
    scripted: MakeScripted, tmp_path: Path
) -> None:
    lm, transport = scripted(noisy(20))
    made = js.compile(asked().method, rows(), lm=lm, heldout=0.25)
    fitted = made.method.fitted()
    assert sorted(fitted) == ["head", "panel"]
    assert sorted(fitted["panel"]) == [*FORMS]
    assert {"direct", "surface.words"} <= set(fitted["head"]["weights"])
    assert "percent" not in fitted["head"]["weights"]
    (told,) = (note for note in made.report.notes if note.startswith("readings:"))
    assert "the own score is the mean of 2 standardised members" in told
    verdicts = list(made.score_many(rows(8)))
    made.save(tmp_path / "judge.json")
    loaded = load(tmp_path / "judge.json", lm=lm)
    assert [v.score for v in loaded.score_many(rows(8))] == [v.score for v in verdicts]
    transport.requests.clear()
    verdict = loaded.score(**ROW)
    assert len(transport.requests) == 2
    assert sorted(verdict.opinions) == [*FORMS]
    assert {"direct score", "surface"} <= set(verdict.details.readings)


def test_forms_are_standardised_and_those_that_say_the_same_go(
    scripted: MakeScripted,
) -> None:
    seen = noisy(60)

    def answer(request: Request) -> str:
        if form_of(request) == "words":
            return seen(request)
        return said("percent", quality(request) / 10)

    lm, transport = scripted(answer)
    made = js.compile(asked().method, rows(), lm=lm, heldout=0.25)
    standings = made.method.fitted()["panel"]
    assert standings["percent"]["spread"] < standings["words"]["spread"]
    lm, transport = scripted(noisy(0))
    alike = js.compile(asked().method, rows(), lm=lm, heldout=0.25)
    assert [*alike.method.fitted()["panel"]] == ["percent"]
    transport.requests.clear()
    assert alike.score(**ROW).failure is None
    assert len(transport.requests) == 1


def test_forms_that_are_not_asked_are_not_settled(scripted: MakeScripted) -> None:
    lm, transport = scripted(noisy(20))
    options = {"reader": "none", "surface": False, "experience": "none"}
    options |= {"signals": ["metric=0..100"], "first": "metric"}
    method = ModelReadings("fluency", forms=FORMS, **options)
    rated = [{**row, "metric": f"{row['score']:.0f}"} for row in rows()]
    made = js.compile(method, rated, lm=lm, heldout=0.25)
    assert not transport.requests
    assert made.method.fitted() == {}
    assert not any("standardised" in note for note in made.report.notes)
    assert "members" not in made.method.facts()
    assert made.score(**ROW, metric="50").score == pytest.approx(50, abs=5)


def test_a_row_that_most_forms_fail_on_has_no_score(scripted: MakeScripted) -> None:
    lm, _ = scripted(noisy(20))
    made = js.compile(asked().method, rows(), lm=lm, heldout=0.25)
    silent = scripted(lambda request: Unanswered("HTTP 400", again=False))[0]
    verdict = made.with_(lm=silent).score(**ROW)
    assert verdict.failure is not None
    assert "only 0 of 2 members" in verdict.failure


def test_members_without_forms_and_forms_named_twice_are_refused(
    scripted: MakeScripted, tmp_path: Path
) -> None:
    with pytest.raises(OptionError, match="words is repeated"):
        ModelReadings("fluency", forms=["words", "words"])
    lm, _ = scripted(noisy(20))
    data = to_dict(js.compile(asked().method, rows(), lm=lm, heldout=0.25))
    data["program"]["options"].pop("forms")
    (tmp_path / "judge.json").write_text(json.dumps(data))
    with pytest.raises(ArtifactError, match="members of a panel need forms"):
        load(tmp_path / "judge.json", lm=lm)
