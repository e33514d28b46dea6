"""Members of a panel read by the probabilities of their answers, by their likeliest answer, and from older files."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from members import noise, quality, said

import judgesmith as js
from judgesmith.programs.answers.reply import Reply, TokenChoice
from judgesmith.programs.artifact import to_dict
from judgesmith.programs.loading import load
from judgesmith.programs.models.transport import Request
from judgesmith.programs.panel.forms import FormName, Member
from judgesmith.programs.panel.judge import Panel
from judgesmith.programs.readings.judge import ModelReadings
from judgesmith.testing.scripted import MakeScripted

ROW = {"source": "A source.", "output": "From here it is 70 miles to mill 1."}
#: A token with the likely ones at its place.
Likely = tuple[str, Mapping[str, float]]
#: By form: an answer's tokens where it is decided, what the likeliest answer is worth, and what all are.
ANSWERS: Mapping[str, tuple[FormName, str, list[Likely], float, float]] = {
    # .5 · 75 + .5 · 25
    "a number": ("percent", "Score: 4", [("4", {"4": 0.5, " 2": 0.5})], 75, 50),
    "criteria": (
        "criteria",
        "fluency: It reads well.\nScore: 4",
        [("4", {"4": 0.5, "2": 0.5})],
        75,
        50,
    ),
    "words": ("words", "Rating: Good", [("Good", {"Good": 0.5, "Poor": 0.5})], 75, 50),
    "a label": (
        "errors",
        "No Error\n\nOverall: Good\nReason: as it is.",
        [("Good", {"Good": 0.5, "Poor": 0.5})],
        75,
        50,
    ),
    # .4 · 50 + .6 · (.75 · 100 + .25 · 0)
    "words with a token in common": (
        "reference",
        "Rating: Much better",
        [
            ("Much", {"Much": 0.6, "Equal": 0.4}),
            (" better", {" better": 0.75, " worse": 0.25}),
        ],
        100,
        65,
    ),
    # (.9 + .9 + .9 + .4 + .4) / 5
    "questions": (
        "questions",
        "1: Yes\n2: Yes\n3: Yes\n4: No\n5: No",
        [("Yes", {"Yes": 0.9, "No": 0.1})] * 3 + [("No", {"No": 0.6, "Yes": 0.4})] * 2,
        60,
        70,
    ),
}


def spoken(text: str, decided: list[Likely]) -> Reply:
    """An answer with log-probabilities at some of its tokens, which stand in it one after the other."""
    tokens, place = list[TokenChoice](), 0
    for token, likely in decided:
        begin = text.index(token, place)
        if begin > place:
            tokens.append(TokenChoice(text[place:begin], ()))
        shares = tuple((other, math.log(share)) for other, share in likely.items())
        tokens.append(TokenChoice(token, shares))
        place = begin + len(token)
    if place < len(text):
        tokens.append(TokenChoice(text[place:], ()))
    return Reply(text, tuple(tokens))


@pytest.mark.parametrize("name", ANSWERS)
def test_a_member_is_the_mean_of_its_answers_where_there_are_probabilities(
    name: str, scripted: MakeScripted
) -> None:
    form, text, decided, likeliest, expected = ANSWERS[name]
    able, transport = scripted(lambda request: spoken(text, decided), logprobs=True)
    row = ROW | {"reference": "Another text."}
    panel = Panel("fluency", forms=(form,))
    judged = js.Judge(panel, lm=able).score(**row)
    assert judged.percent == pytest.approx(expected)
    assert judged.opinions[form].percent == judged.percent
    assert not any("taken" in note for note in judged.notes)
    assert transport.requests[0].top_logprobs == 20
    # The same answer of a model without them, and read as it stands: a number is then of 0 to 100.
    text = re.sub(r"Score: 4", "Score: 75", text)
    unable, its = scripted(lambda request: text)
    stated = js.Judge(Panel("fluency", forms=(form,)), lm=unable)
    assert stated.score(**row).percent == pytest.approx(likeliest)
    assert its.requests[0].top_logprobs == 0
    able, _ = scripted(lambda request: text, logprobs=True)
    stated = js.Judge(Panel("fluency", forms=(form,), reading="said"), lm=able)
    assert stated.score(**row).percent == pytest.approx(likeliest)


@pytest.mark.parametrize("name", ANSWERS)
def test_without_probabilities_at_its_place_an_answer_counts_as_it_stands(
    name: str,
) -> None:
    form, text, _, likeliest, _ = ANSWERS[name]
    member = Member(form, "expected")
    criteria = (js.Criterion("fluency", ""),)
    elsewhere = Reply(text, (TokenChoice(text, ((text, 0.0), ("x", -3.0))),))
    for reply in (Reply(text), elsewhere):
        inputs = {"criteria": criteria, "output": "A text."}
        read = member.predict.layout.read(reply, inputs)
        score = member.opinion(Stand(read), js.Item("A text.")).percent  # type: ignore[arg-type]
        assert score == pytest.approx(likeliest)
        assert form == "criteria" or any("taken" in note for note in read.notes)


class Stand:
    """An answer that was read."""

    def __init__(self, read: Any) -> None:
        self.read = read


def coarse(request: Request) -> Reply:
    """A model that nearly always says Fair, and knows better by its probabilities."""
    lead = quality(request) / 100 + 0.05 * noise(request.messages[-1]["content"])
    good = min(0.45, max(0.0, 0.45 * lead))
    likely = {"Fair": 0.55, "Good": good, "Poor": 0.45 - good}
    likely = {word: share for word, share in likely.items() if share > 0}
    return spoken(said("words", 50), [("Fair", likely)])


def rows(count: int = 60) -> list[dict[str, Any]]:
    made = []
    for n in range(count):
        miles = 10 + n * 37 % 81
        text = f"From here it is {miles} miles to mill {n}."
        row = {"source": f"Source {n // 2}.", "output": text, "doc_id": f"d{n // 2}"}
        made.append({**row, "score": miles})
    return made


@pytest.mark.parametrize(
    "how", [{"heldout": 0.25}, {"optimizer": "zero-shot", "cv": 4}], ids=str
)
def test_compiling_hears_what_is_between_the_words_and_saves_how(
    how: dict[str, Any], scripted: MakeScripted, tmp_path: Path
) -> None:
    able, _ = scripted(coarse, logprobs=True)
    panel = Panel("fluency", forms=("words",))
    made = js.compile(panel, rows(), lm=able, **how)
    assert made.report is not None
    told = "; members are read by the model's probabilities"
    assert any(told in note for note in made.report.notes)
    verdict = made.score(**ROW)
    assert made.method.facts()["read"].startswith("the mean of each member's answers")
    made.save(tmp_path / "judge.json")
    saved = json.loads((tmp_path / "judge.json").read_text())
    assert saved["program"]["options"]["reading"] == "expected"
    assert load(tmp_path / "judge.json", lm=able).score(**ROW).score == verdict.score
    worse = ROW | {"output": "From here it is 20 miles to mill 1."}
    assert made.score(**worse).score < verdict.score
    # By its likeliest answers alone the model says one word of everything.
    unable, _ = scripted(lambda request: coarse(request).text)
    row = load(tmp_path / "judge.json", lm=unable).score(**ROW)
    assert "words: no log-probabilities at the word; it was taken" in row.notes


def test_a_jury_reads_each_model_as_it_can(scripted: MakeScripted) -> None:
    _, text, decided, likeliest, expected = ANSWERS["a number"]
    able, _ = scripted(lambda request: spoken(text, decided), logprobs=True)
    unable, _ = scripted(lambda request: text, name="openai/b")
    panel = Panel("fluency", models=["openai/b"], forms=["percent"])
    panel.use("openai/b", unable)
    opinions = js.Judge(panel, lm=able).score(**ROW).opinions
    assert opinions["percent"].percent == pytest.approx(expected)
    assert opinions["percent of openai/b"].percent == likeliest
    assert opinions["percent of openai/b"].notes == (
        "no log-probabilities at the score; the stated number was taken",
    )


def test_files_from_before_are_read_as_they_were(
    scripted: MakeScripted, tmp_path: Path
) -> None:
    _, text, decided, likeliest, expected = ANSWERS["words"]
    able, transport = scripted(lambda request: spoken(text, decided), logprobs=True)
    for method, name in (
        (Panel("fluency", forms=("words",)), "reading"),
        (ModelReadings("fluency", forms=("percent", "words")), "forms_reading"),
    ):
        new = js.Judge(method, lm=able)
        data = to_dict(new)
        assert data["program"]["options"].pop(name) in ("auto", "expected")
        old = tmp_path / "old.json"
        old.write_text(json.dumps(data))
        loaded = load(old, lm=able)
        assert getattr(loaded.method.options, name) == "said"
        assert to_dict(loaded)["program"] == data["program"]
        if isinstance(method, Panel):
            assert new.score(**ROW).percent == pytest.approx(expected)
            assert loaded.score(**ROW).percent == likeliest
            assert transport.requests[-1].top_logprobs == 0


def test_forms_of_readings_are_read_by_probabilities_too(
    scripted: MakeScripted,
) -> None:
    able, _ = scripted(coarse, logprobs=True)
    readings = js.Judge(
        ModelReadings("fluency", forms=("words",), reader="none"), lm=able
    )
    panel = js.Judge(Panel("fluency", forms=("words",)), lm=able)
    percents = [judge.score(**ROW).percent for judge in (readings, panel)]
    assert percents[0] == percents[1] != 50
    assert readings.method.options.forms_reading == "expected"


def listed(answer: str) -> list[dict[str, Any]]:
    """An answer's tokens with log-probabilities: of each number, word or sign, and as likely the worst score."""
    tokens = list[dict[str, Any]]()
    for token in re.findall(r"\w+|\W+", answer):
        others = {"token": "Unacceptable" if token.isalpha() else "1", "logprob": -0.69}
        likeliest = {"token": token, "logprob": -0.69}
        tokens.append({"token": token, "top_logprobs": [likeliest, others]})
    return tokens


def best(ask: Any) -> str:
    """The best answer to each form, and the probe's."""
    if ask.step == "probe":
        return "4"
    if "Rating: <one of" in ask.text:
        return "Rating: Excellent"
    return "Score: 5" if "from 1 (" in ask.text else "Score: 100"


@pytest.mark.parametrize("able", [True, False])
def test_a_panel_on_the_command_line(
    able: bool,
    server: Any,
    cli: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`new`, `score` and `show` with an OpenAI-style server."""
    server.logprobs = able
    monkeypatch.setattr(server, "listed", listed)
    server.answer = best
    judge, out = tmp_path / "judge.json", tmp_path / "scored.jsonl"
    reach = ("--lm", "openai/fake", "--api-base", server.base)
    new = cli(
        *("new", "fluency", *reach, "--method", "panel"),
        *("--forms", "percent,words", "--scale", 0, 100, "-o", judge),
    )
    assert new.code == 0, new.err
    rows_file = tmp_path / "rows.jsonl"
    rows_file.write_text(json.dumps(ROW))
    done = cli("score", rows_file, "--judge", judge, *reach[2:], "-o", out)
    assert done.code == 0, done.err
    (row,) = map(json.loads, out.read_text().splitlines())
    assert row["verdict"]["score"] == pytest.approx(50.0 if able else 100.0)
    assert "by the model's probabilities" in cli("show", judge).out
