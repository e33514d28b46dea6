"""Direct scoring by comparisons: the formula, one document's cost, what a verdict says, demonstrations, compiling."""

import math
import random
import re
from pathlib import Path
from typing import Any

import pytest

from judgesmith.errors import BudgetError, OptionError
from judgesmith.programs.answers.reply import Reply, TokenChoice
from judgesmith.programs.aspects import aspects
from judgesmith.programs.comparing.pairwise import (
    PairwiseDirectScorer,
    Vectors,
    pairwise_score,
)
from judgesmith.programs.comparing.references import ReferenceStore
from judgesmith.programs.comparing.synthesis import writing_order
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.transport import Request, Unanswered
from judgesmith.signatures.values import Criterion, Item, Scale

# The formula


def test_the_formula_by_hand() -> None:
    # 1·(.9−.0) + 2·(.6−.3) + 3·(.1−.8) = .9 + .6 − 2.1
    assert pairwise_score([0.9, 0.6, 0.1], [0.0, 0.3, 0.8]) == pytest.approx(
        -0.6, abs=1e-12
    )
    assert math.isnan(pairwise_score([math.nan], [0.1]))


@pytest.mark.parametrize(
    ("better", "worse"),
    [([], []), ([0.5], [0.5, 0.1]), ([0.8], [0.3]), ([-0.1], [0.3])],
)
def test_what_are_no_probabilities_is_refused(
    better: list[float], worse: list[float]
) -> None:
    with pytest.raises(OptionError):
        pairwise_score(better, worse)


# A model that writes and compares


class Model:
    """Writes "Reference {level} of {document}." and answers comparisons by `odds(level, output)`."""

    def __init__(self, odds: Any, *, levels: int = 5, logprobs: bool = True) -> None:
        self.odds = odds
        self.order = writing_order(levels)
        self.logprobs = logprobs
        self.written: dict[str, int] = {}
        self.comparisons = 0

    def __call__(self, request: Request) -> Any:
        text = request.messages[-1]["content"]
        document = text.split("<source>\n")[1].split("\n</source>")[0]
        if "Aim at about" in text:
            level = self.order[self.written.get(document, 0)]
            self.written[document] = self.written.get(document, 0) + 1
            return f"Reference {level} of {document}."
        self.comparisons += 1
        first, second = (
            part.split("\n</output>")[0] for part in text.split("<output>\n")[1:3]
        )
        turned = second.startswith("Reference ")
        reference, output = (second, first) if turned else (first, second)
        odds = self.odds(int(reference.split()[1]), output)
        if isinstance(odds, Unanswered):
            return odds
        if not self.logprobs:
            return odds if isinstance(odds, str) else max(odds, key=odds.get)
        if turned:
            swap = {"Better": "Worse", "Worse": "Better", "Similar": "Similar"}
            odds = {swap[word]: p for word, p in odds.items()}
        alternatives = tuple((word, math.log(p)) for word, p in odds.items() if p > 0)
        word = max(odds, key=odds.get)
        return Reply(
            word,
            (TokenChoice(word, alternatives),),
            prompt_tokens=10,
            completion_tokens=1,
        )


def scorer(
    tmp_path: Path, lm: Any, scale: Scale | None = None, **options: Any
) -> Judge:
    store = ReferenceStore(tmp_path / "references.sqlite")
    return Judge(
        PairwiseDirectScorer(
            **({"aspect": "fluency", "references": store, "material": "all"} | options)
        ),
        lm=lm,
        scale=scale,
    )


def steps(level: int, output: str) -> dict[str, float]:
    """Better than 1 and 2, similar to 3, worse than 4 and 5."""
    better = {1: 0.9, 2: 0.7, 3: 0.2, 4: 0.1, 5: 0.05}[level]
    worse = {1: 0.0, 2: 0.1, 3: 0.2, 4: 0.6, 5: 0.9}[level]
    return {"Better": better, "Worse": worse, "Similar": 1 - better - worse}


@pytest.mark.parametrize("order", ["other-first", "output-first", "both"])
@pytest.mark.parametrize("n", range(2, 10))
def test_scores_are_the_formula(
    scripted: Any, tmp_path: Path, n: int, order: Any
) -> None:
    rng = random.Random(n)
    odds = {}
    for level in range(1, n + 1):
        raw = [rng.random() for _ in range(3)]
        odds[level] = dict(
            zip(
                ("Better", "Worse", "Similar"), (r / sum(raw) for r in raw), strict=True
            )
        )
    lm, transport = scripted(
        Model(lambda level, _: odds[level], levels=n), logprobs=True
    )
    judge = scorer(tmp_path, lm, levels=n, order=order)
    verdict = judge.score("The document.", "The output.")
    s = sum(i * (odds[i]["Better"] - odds[i]["Worse"]) for i in odds)
    assert verdict.percent == pytest.approx(50 * (1 + s / (n * (n + 1) / 2)), abs=1e-9)
    assert verdict.score == pytest.approx(verdict.percent)  # on 0..100
    assert (
        len(transport.requests)
        == n + judge.method.cost().calls_per_row
        == verdict.usage.calls
    )


def test_what_the_references_depend_on(scripted: Any, tmp_path: Path) -> None:
    model = Model(steps)
    lm, _ = scripted(model, logprobs=True)
    scorer(tmp_path, lm).score("D.", "One.", context=None)
    for changed in (
        {"levels": 3},
        {"words": 12},
        {"low": "it is gibberish"},
        {"aspect": "coherence"},
        {"family": "story"},
    ):
        model.written, model.order = {}, writing_order(changed.get("levels", 5))  # type: ignore[call-overload]
        scorer(tmp_path, lm, **changed).score("D.", "One.")
        assert model.written["D."] == changed.get("levels", 5)
    model.written = {}
    scorer(tmp_path, lm, order="both", temperature=0.5, scale=Scale(1, 5)).score(
        "D.", "Two.", reference="Gold."
    )
    assert model.written == {}


def test_the_verdict_says_what_it_beats(scripted: Any, tmp_path: Path) -> None:
    lm, _ = scripted(Model(steps), logprobs=True)
    verdict = scorer(tmp_path, lm, scale=Scale(1, 5)).score("D", "One.")
    assert verdict.explanation == (
        "Better than level 1 and 2, similar to level 3, worse than level 4 and 5 (of 5). "
        "Level 2: “Reference 2 of D.” Level 4: “Reference 4 of D.”"
    )
    assert isinstance(verdict.details, Vectors)
    assert verdict.to_dict()["details"] == {
        "levels": [1, 2, 3, 4, 5],
        "better": [0.9, 0.7, 0.2, 0.1, 0.05],
        "worse": [0.0, 0.1, 0.2, 0.6, 0.9],
        "flipped": [],
    }
    assert verdict.notes == ()
    assert verdict.score == pytest.approx(1 + 4 * verdict.percent / 100)


def test_low_shares_and_comparisons_out_of_order_are_said(
    scripted: Any, tmp_path: Path
) -> None:
    odds = {"Better": 0.2, "Worse": 0.1}  # the rest lies on other words
    lm, _ = scripted(
        Model(lambda level, _: odds if level == 2 else steps(6 - level, "")),
        logprobs=True,
    )
    verdict = scorer(tmp_path, lm).score("D", "One.")
    assert "contradict the order" in verdict.explanation
    assert verdict.notes == (
        "little of the probability was on the asked words in 1 of 5 comparisons (at least 30.0%)",
    )


def test_both_orders_say_how_often_they_disagree(scripted: Any, tmp_path: Path) -> None:
    model = Model(steps)

    def answer(request: Request) -> Any:
        usual = model(request)
        text = request.messages[-1]["content"]
        if "Aim at about" in text or not any(f"Reference {n} " in text for n in (2, 3)):
            return usual
        # The place decides at levels 2 and 3, whatever stands there.
        return Reply(
            "Better", (TokenChoice("Better", (("Better", -0.1), ("Worse", -3.0))),)
        )

    lm, _ = scripted(answer, logprobs=True)
    verdict = scorer(tmp_path, lm, order="both").score("D", "One.")
    assert "the two orders disagreed in 2 of 5 comparisons" in verdict.notes
    assert isinstance(verdict.details, Vectors)
    assert verdict.details.flipped == (False, True, True, False, False)
    assert model.comparisons == 10


# Without log-probabilities


def test_drawn_answers_are_named_with_their_error(
    scripted: Any, tmp_path: Path
) -> None:
    draws = {
        1: "Better Better Better Better",
        2: "Better Worse Better Worse",
        3: "Worse Worse Worse Worse",
    }
    asked: dict[int, int] = {}

    def odds(level: int, _: str) -> str:
        asked[level] = asked.get(level, -1) + 1
        return draws[level].split()[asked[level]]

    lm, transport = scripted(Model(odds, levels=3, logprobs=False))
    judge = scorer(tmp_path, lm, levels=3, samples=4, temperature=0.8)
    verdict = judge.score("D", "One.")
    assert judge.method.options.reading == "samples"
    # s = 1 + 0 − 3 = −2 of ±6 → 33.33
    assert verdict.percent == pytest.approx(50 * (1 - 2 / 6))
    # level 2: variance 1, √(1/3); of the score 50·2·.57735/6 = 9.6
    assert verdict.notes == (
        "not from log-probabilities: 4 answers drawn a comparison at temperature 0.8",
        "standard error of the score: ±9.6 of 100",
    )
    assert judge.method.cost().calls_per_row == 12
    assert {r.temperature for r in transport.requests[3:]} == {0.8}


def test_answers_drawn_from_probabilities_come_to_their_score(
    scripted: Any, tmp_path: Path
) -> None:
    model = Model(steps)
    lm, _ = scripted(model, logprobs=True)
    exact = scorer(tmp_path, lm).score("D", "One.").percent
    found = [
        scorer(tmp_path, lm, reading="drawn", samples=1000, trial=t).score("D", "One.")
        for t in range(5)
    ]
    assert model.comparisons == 6 * 5  # one call a level, however many are drawn
    assert len({verdict.percent for verdict in found}) == 5
    # The standard error of 1000 draws is below .8 of 100, whatever the probabilities.
    assert all(verdict.percent == pytest.approx(exact, abs=3.2) for verdict in found)
    assert (
        "from log-probabilities: 1000 answers drawn a comparison at temperature 1"
        in found[0].notes[0]
    )


def test_a_judge_for_log_probabilities_says_that_it_lacks_them(
    scripted: Any, tmp_path: Path
) -> None:
    lm, _ = scripted(Model(lambda *_: "Better", logprobs=False))
    verdict = scorer(tmp_path, lm, reading="probabilities", samples=1).score(
        "D", "One."
    )
    assert verdict.percent == 100.0
    assert "; the judge was made for log-probabilities" in verdict.notes[0]
    assert verdict.notes[1] == "standard error of the score: unknown from one answer"


# Failures


def test_a_failed_comparison_leaves_its_level_out_too_few_are_no_score(
    scripted: Any, tmp_path: Path
) -> None:
    failing = {2}

    def odds(level: int, _: str) -> Any:
        return (
            Unanswered("HTTP 400", again=False)
            if level in failing
            else steps(level, "")
        )

    lm, _ = scripted(Model(odds), logprobs=True)
    verdict = scorer(tmp_path, lm).score("D", "One.")
    # .9 + 0 − 4·.5 − 5·.85 = −5.35 of ±(1 + 3 + 4 + 5)
    assert verdict.percent == pytest.approx(50 * (1 - 5.35 / 13), abs=1e-9)
    assert any(
        n.startswith("the comparison with level 2 failed") for n in verdict.notes
    )
    assert (
        "the score rests on levels 1, 3, 4, 5, which keep their weights; its range is theirs alone"
        in verdict.notes
    )
    failing ^= {2, 4, 5}
    verdict = scorer(tmp_path, lm).score("Another", "One.")
    assert math.isnan(verdict.score)  # levels 1 to 3 hold 6 of 15
    assert (verdict.failure or "").startswith(
        "only 3 of 5 comparisons could be made: test/model: HTTP 400"
    )
    assert verdict.usage.calls >= 8


def test_a_used_up_budget_ends_the_run(scripted: Any, tmp_path: Path) -> None:
    lm, transport = scripted(Model(steps), logprobs=True)
    judge = scorer(tmp_path, lm, order="both")
    judge.score("D", "One.")
    asked = len(transport.requests)
    lm.meter.max_calls = lm.meter.logical + 3
    with pytest.raises(BudgetError):
        judge.score("D", "Two.")
    lm.meter.max_calls = None
    assert len(transport.requests) == asked + 3  # none goes on afterwards
    assert judge.score("D", "Three.").failure is None
    assert len(transport.requests) == asked + 3 + 10


def test_a_level_left_out_is_noted(scripted: Any, tmp_path: Path) -> None:
    model = Model(steps, levels=3)

    def answer(request: Request) -> Any:
        between = "half-way between" in request.messages[-1]["content"]
        return "Here is the text. It fails." if between else model(request)

    lm, _ = scripted(answer, logprobs=True)
    verdict = scorer(tmp_path, lm, levels=3).score("D", "One.")
    assert any(
        n.startswith("level 2 has no reference: it announces itself")
        for n in verdict.notes
    )
    # levels 1 and 3: written as "Reference 1" and "Reference 3"; .9 + 0 of ±4
    assert verdict.percent == pytest.approx(50 * (1 + 0.9 / 4), abs=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"levels": 1},
        {"family": "poem"},
        {"writer": "openai/https://evil.example"},
        {"criteria": [Criterion("a", "b"), Criterion("c", "d")]},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        PairwiseDirectScorer(**options)


# Writer, library, artifact


def test_another_model_writes(scripted: Any, tmp_path: Path) -> None:
    writer, writing = scripted(Model(steps), name="test/writer")
    lm, comparing = scripted(Model(steps), logprobs=True)
    judge = scorer(tmp_path, lm, writer=writer)
    assert judge.score("D", "One.").failure is None
    assert (len(writing.requests), len(comparing.requests)) == (5, 5)
    assert judge.method.models() == ("test/writer",)
    assert lm.meter.logical >= 10  # one bill


def test_an_aspect_of_the_library_brings_its_words() -> None:
    judge = Judge(PairwiseDirectScorer("summarization/coherence"))
    known = aspects().find("summarization/coherence")
    assert (
        judge.method.options.family,
        judge.method.options.aspect,
        judge.method.options.low,
        judge.method.options.high,
    ) == (
        "summarization",
        "coherence",
        known.low,
        known.high,
    )
    own = Judge(
        PairwiseDirectScorer(
            "wit", criteria=[Criterion("wit", "It makes one smile.")], family="dialogue"
        )
    )
    assert own.method.target().described() == "wit: It makes one smile."
    shown = own.previews(Item("An output.", "A source."))
    assert "wit: It makes one smile." in shown["comparer (once a level)"][0]["content"]
    assert any("reply whose wit" in m[-1]["content"] for m in shown.values())


GIVEN = "The old bridge over the Tarn is closed until the first of May, says the mayor of the town."
WRITTEN = "A text of which somebody else is the author, and which is long."


@pytest.mark.parametrize(
    ("reference", "output", "written", "best"),
    [
        (GIVEN, "One output.", "", GIVEN),
        (GIVEN, GIVEN.lower(), WRITTEN, WRITTEN),
        (None, "One.", WRITTEN, WRITTEN),
        ("No.", "Too short a reference.", WRITTEN, WRITTEN),
        (None, GIVEN, GIVEN, None),
        (GIVEN, GIVEN, "", None),
        ("No.", "Yes.", "", "nothing"),
    ],
)
def test_the_best_output_at_hand_is_never_the_judged_one(
    scripted: Any,
    tmp_path: Path,
    reference: str | None,
    output: str,
    written: str,
    best: str | None,
) -> None:
    lm, transport = scripted(
        lambda r: written if "as good as" in str(r.messages) else "Similar",
        logprobs=True,
    )
    judge = scorer(tmp_path, lm, grading="perturbed", levels=4, order="both")
    verdict = judge.score("D.", output, reference=reference)
    if best == "nothing":
        assert "too short for 4 degrees" in (verdict.failure or "")
        return
    asked = "".join(
        text
        for r in transport.requests
        if "Output 2" in (text := r.messages[-1]["content"])
    )
    seen = set(re.findall(r"<output>\n(.*)\n</output>", asked))
    # Without another text: its own perturbed copies, and no unperturbed one.
    assert len(seen) == (5 if best else 4)
    assert {output, best or output} <= seen
    assert ("level 4 has no reference: no other output" in str(verdict.notes)) == (
        best is None
    )
    assert (verdict.percent, verdict.usage.calls) == (
        pytest.approx(50.0),
        len(transport.requests),
    )
    assert (
        best != GIVEN
        or len(transport.requests) == 8 == judge.method.cost().calls_per_row
    )  # nothing was written
