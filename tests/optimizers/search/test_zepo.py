"""The fairest wording of a comparison's instructions, chosen without labels."""

import json
import math
import re
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judgesmith as js
from judgesmith.datasets.records import Labels
from judgesmith.errors import BudgetError, LeakError, OptionError
from judgesmith.optimizers.compiling import Compiler
from judgesmith.optimizers.examples import examples_of
from judgesmith.optimizers.registry import build_optimizer
from judgesmith.optimizers.search.zepo import (
    ZEPO,
    Fairness,
    Wording,
    best_of,
    fairness_of,
    output_pairs,
    usable,
    with_instructions,
)
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.comparing.comparison import Comparison
from judgesmith.programs.comparing.pairwise import PairwiseDirectScorer
from judgesmith.programs.comparing.references import ReferenceStore
from judgesmith.programs.models.lm import Connection, LanguageModel
from judgesmith.programs.models.transport import Reply, Request, TokenChoice, Unanswered
from judgesmith.signatures.judging import CompareOutputs
from judgesmith.signatures.values import Item
from judgesmith.signatures.writing import ParaphraseInstructions

OWN = CompareOutputs.instructions
ASK = " ".join(ParaphraseInstructions.instructions.split())[:50]
MARK = re.compile(r"r\d{3}")


def paraphrase(number: int) -> str:
    """Instructions of about the same length; a number says which."""
    said = "look at both outputs with care and weigh nothing beside the aspect that is named"
    return f"Rater wording {number}: {said}, {said}"


class Model:
    """Writes references, says instructions again as `paraphrase(1)`, `(2)`, …, and compares by `odds(wording, first,
    second)`: the probabilities of (better, worse) for the second output under wording n (0: the judge's own)."""

    name = "test/model"

    def __init__(self, odds: Any) -> None:
        self.odds = odds
        self.requests: list[Request] = []
        self.paraphrases = 0
        self.said: Any = paraphrase

    async def send(self, request: Request) -> Reply:
        last, system = request.messages[-1]["content"], request.messages[0]["content"]
        if "2 + 2 =" in last:
            return Reply("4", (TokenChoice("4", (("4", -0.1), ("5", -3.0))),))
        self.requests.append(request)
        if "Aim at about" in last:
            between = len(re.findall("<output>", last))
            where = "middle" if between else "bad" if "as bad as" in last else "good"
            return Reply(f"A {where} reference of {MARKED.search(last)[0]}.", prompt_tokens=9)  # type: ignore[index]
        if ASK in system:
            self.paraphrases += 1
            return Reply(self.said(self.paraphrases), prompt_tokens=9)
        first, second = (part.split("\n</output>")[0] for part in last.split("<output>\n")[1:3])
        found = re.search(r"wording (\d+)", system)
        odds = self.odds(int(found[1]) if found else 0, first, second)
        if isinstance(odds, Unanswered):
            raise odds
        better, worse = odds
        choices = {"Better": better, "Worse": worse, "Similar": 1 - better - worse}
        word = max(choices, key=lambda w: choices[w])
        return Reply(word, (TokenChoice(word, tuple((w, math.log(p)) for w, p in choices.items() if p > 0)),))

    def lm(self) -> LanguageModel:
        return LanguageModel(self.name, self, identity="test", connection=Connection(cache=False, attempts=1))


MARKED = re.compile(r"d\d{3}")


@pytest.fixture
def labels(labels_of: Any) -> Labels:
    """40 rows of 10 documents."""
    return labels_of(10, 4, lambda n: n * 37 % 101)  # type: ignore[no-any-return]


def judge_of(tmp_path: Path, model: Model, **options: Any) -> PairwiseDirectScorer:
    store = ReferenceStore(tmp_path / "references.sqlite")
    return PairwiseDirectScorer("fluency", levels=2, references=store, lm=model.lm(), **options)


def quality(text: str) -> float:
    """What a text is worth: its row's human score, or its reference's place."""
    if found := MARK.search(text):
        return int(found[0][1:]) * 37 % 101 / 100
    return 0.0 if "bad" in text else 1.0


def leaning(by_wording: dict[int, float], skill: float = 0.3) -> Any:
    """A model that sees quality and likes the second place by `by_wording[n]`."""

    def odds(wording: int, first: str, second: str) -> tuple[float, float]:
        better = 0.5 + skill * (quality(second) - quality(first)) + by_wording.get(wording, 0.2)
        better = min(0.98, max(0.02, better))
        return 0.9 * better, 0.9 * (1 - better)

    return odds


# -- fairness


def test_fairness_by_hand() -> None:
    # first places: .1 + .6 = .7, second places: .8 + .3 = 1.1; .7/1.8 = .3889; 1 − 2·.1111
    found = fairness_of([Comparison(0.8, 0.1, 0.1), Comparison(0.3, 0.6, 0.1)])
    assert found.first == pytest.approx(0.7 / 1.8)
    assert found.value == pytest.approx(1 - 2 * (0.5 - 0.7 / 1.8))
    assert found.decided == pytest.approx(0.9)
    assert fairness_of([Comparison(1.0, 0.0, 0.0)] * 4).value == 0.0
    # always "similar" is no fairness, and neither are failures
    assert math.isnan(fairness_of([Comparison(0.001, 0.001, 0.998)] * 4).value)
    half = fairness_of([Comparison(0.5, 0.5, 0.0), None])
    assert math.isnan(half.value)
    assert half.reason == "1 of 2 comparisons failed"
    assert fairness_of([]).reason == "0 of 0 comparisons failed"


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.floats(0.02, 0.98), st.floats(0, 0.9)), min_size=1, max_size=12), st.floats(0, 0.3))
def test_who_minds_no_places_is_fair_whatever_the_outputs(pairs: list[tuple[float, float]], similar: float) -> None:
    both = []
    for better, _ in pairs:
        one = Comparison((1 - similar) * better, (1 - similar) * (1 - better), similar)
        both += [one, one.swapped()]  # shown the other way round, the other words are as probable
    found = fairness_of(both)
    assert found.value == pytest.approx(1.0)
    assert 0.0 <= fairness_of([Comparison(b, 1 - b, 0.0) for b, _ in pairs]).value <= 1.0


def test_the_fairest_is_taken_and_the_own_of_equals() -> None:
    def wording(name: str, first: float, reason: str | None = None) -> Wording:
        return Wording(name, Fairness(first, 0.9, 4, reason=reason))

    own = wording("own", 0.4)
    assert best_of([own, wording("a", 0.6), wording("b", 0.45)]).instructions == "b"
    assert best_of([own, wording("a", 0.6)]) is own  # .4 and .6 are equally far from one half
    assert best_of([own, wording("a", 0.5, "nothing was preferred")]) is own
    assert best_of([wording("own", 0.5, "no"), wording("a", 0.9)]).instructions == "a"


def test_pairs_are_of_one_document_and_fixed() -> None:
    items = [Item(f"o{i}", f"d{i % 3}") for i in range(9)] + [Item("o0", "d0"), Item(" ", "d1")]
    pairs = output_pairs(items, 6, seed=0)
    assert len(pairs) == 6
    of_output = {i.output: i.source for i in items if i.output != " "}
    for item, other in pairs:
        assert item.output != other
        assert of_output[other] == item.source
    assert {item.source for item, _ in pairs} == {"d0", "d1", "d2"}  # by turns
    assert len({frozenset((item.output, other)) for item, other in output_pairs(items, 99, seed=0)}) == 9
    assert output_pairs(items, 6, seed=0) == pairs
    assert output_pairs([Item("a", "x"), Item("b", "y")], 6, seed=0) == []


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (paraphrase(3), paraphrase(3)),
        (f'"{paraphrase(3)}"', paraphrase(3)),
        (f"Paraphrased instructions:\n{paraphrase(3)}", paraphrase(3)),
        ("", None),
        ("Compare them.", None),
        ("word " * 400, None),
        (paraphrase(3) + " <output>", None),
        (paraphrase(3) + " <|im_end|>", None),
    ],
)
def test_what_can_be_a_paraphrase(answer: str, kept: str | None) -> None:
    assert usable(answer, OWN) == kept


# -- the search


def test_the_fairest_wording_is_kept_and_saved(labels: Labels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGESMITH_REFERENCES", str(tmp_path / "references.sqlite"))
    model = Model(leaning({0: 0.2, 1: 0.1, 2: 0.0, 3: -0.15}))
    search = ZEPO(candidates=3, pairs=8)
    compiled = search.compile(judge_of(tmp_path, model), trainset=examples_of(labels))
    assert [w.instructions for w in search.wordings] == [OWN, paraphrase(1), paraphrase(2), paraphrase(3)]
    # .5 + lean falls on the second place: 1 − 2·.2, 1 − 2·.1, 1, 1 − 2·.15 (quality cancels out over both orders)
    assert [w.fairness.value for w in search.wordings] == pytest.approx([0.6, 0.8, 1.0, 0.7], abs=1e-6)
    record = search.record
    assert record is not None
    assert [c.name for c in record.candidates] == ["zero-shot", "fairest wording"]
    assert record.selected.name == "fairest wording"
    assert record.selected.demos == 0
    told = record.selected.to_dict()["form"]
    assert (told["instructions"], told["fairness"]) == (paraphrase(2), 1.0)
    assert [t["fairness"] for t in told["tried"]] == pytest.approx([0.6, 0.8, 1.0, 0.7], abs=1e-6)
    assert "chosen without labels" in (record.reason or "")
    assert compiled.comparer.predict.signature.instructions == paraphrase(2)
    assert compiled.comparer.predict.demos == []
    compiled.save(tmp_path / "judge.json")
    loaded = js.load(tmp_path / "judge.json", lm=model.lm())
    assert isinstance(loaded, PairwiseDirectScorer)
    assert loaded.comparer.predict.signature.instructions == paraphrase(2)
    model.requests.clear()
    assert loaded.score(labels.rows[0].source, "A new output r001.").failure is None
    assert all("Rater wording 2" in r.messages[0]["content"] for r in model.requests)
    assert len(model.requests) == 2  # the references are still those of before
    json.dumps([c.to_dict() for c in record.candidates], allow_nan=False)


def test_labels_are_not_read_for_the_choice(labels: Labels, tmp_path: Path) -> None:
    def wordings(trainset: list[dspy.Example], folder: str) -> list[dict[str, Any]]:
        model = Model(leaning({0: 0.2, 1: 0.05, 2: -0.1}))
        (tmp_path / folder).mkdir()
        search = ZEPO(candidates=2, pairs=8, seed=4)
        search.compile(judge_of(tmp_path / folder, model), trainset=trainset)
        return [w.to_dict() for w in search.wordings]

    rows = examples_of(labels)
    turned = [dspy.Example(**{**e.toDict(), "score": 100 - e.score}).with_inputs(*e.inputs().keys()) for e in rows]
    assert wordings(rows, "one") == wordings(turned, "other")
    # and without any search around it, from outputs alone
    model = Model(leaning({0: 0.2, 1: 0.05}))
    judge = judge_of(tmp_path, model)
    items = [Item(r.output, r.source) for r in labels.rows]
    found = ZEPO(candidates=1, pairs=8).fairest(judge, items)
    assert best_of(found).instructions == paraphrase(1)
    assert judge.comparer.predict.signature.instructions == OWN  # the judge given is left as it is
    assert with_instructions(judge, paraphrase(1)).comparer.predict.signature.instructions == paraphrase(1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sure", [0.0, 0.7])
def test_a_fair_wording_that_is_clearly_wrong_is_not_taken(
    sure: float, seed: int, labels: Labels, tmp_path: Path
) -> None:
    def odds(wording: int, first: str, second: str) -> tuple[float, float]:
        if wording == 0:
            return leaning({0: 0.2})(0, first, second)  # type: ignore[no-any-return]
        turned = 0.5 - 0.3 * (quality(second) - quality(first))  # fair, and the wrong way round
        return 0.9 * turned, 0.9 * (1 - turned)

    search = ZEPO(candidates=2, pairs=8, seed=seed, sure=sure)
    compiled = search.compile(judge_of(tmp_path, Model(odds)), trainset=examples_of(labels))
    record = search.record
    assert record is not None
    assert record.selected.name == "zero-shot"
    assert "clearly less with people" in (record.reason or "")
    assert record.selected.agreement.q > record.candidates[1].agreement.q
    assert compiled.comparer.predict.signature.instructions == OWN


def test_the_own_instructions_stay_where_they_are_the_fairest(labels: Labels, tmp_path: Path) -> None:
    model = Model(leaning({0: 0.0}))
    search = ZEPO(candidates=2, pairs=4)
    search.compile(judge_of(tmp_path, model), trainset=examples_of(labels))
    record = search.record
    assert record is not None
    assert [c.name for c in record.candidates] == ["zero-shot"]
    assert record.reason == (
        "the judge's own instructions are the fairest of 3 wordings (fairness 1.00; no label was used)"
    )
    # zero-shot: 40 rows with 2 comparisons, 10 documents with 2 references; 2 paraphrases; 3 wordings, 4 pairs twice
    assert len(model.requests) == 80 + 20 + 2 + 3 * 8
    assert search.proposals(judge_of(tmp_path, model), 40) == 2 * 2 + 3 * 8


def test_unusable_and_repeated_paraphrases(labels: Labels, tmp_path: Path) -> None:
    model = Model(leaning({}))
    model.said = lambda n: [OWN, "Short.", paraphrase(7), paraphrase(7).upper(), "", paraphrase(8)][(n - 1) % 6]
    search = ZEPO(candidates=3, pairs=4)
    search.compile(judge_of(tmp_path, model), trainset=examples_of(labels))
    assert [w.instructions for w in search.wordings] == [OWN, paraphrase(7), paraphrase(8)]
    assert model.paraphrases == 7  # two draws each at most; an empty answer is asked for again
    model.said = lambda n: "no"
    search.compile(judge_of(tmp_path, model), trainset=examples_of(labels))
    assert search.record is not None
    assert "no paraphrase of them was usable" in (search.record.reason or "")


def test_rounds_paraphrase_the_fairest_so_far(labels: Labels, tmp_path: Path) -> None:
    model = Model(leaning({0: 0.3, 1: 0.2, 2: 0.25, 3: 0.1, 4: 0.15}))
    search = ZEPO(candidates=2, rounds=2, pairs=4)
    search.compile(judge_of(tmp_path, model), trainset=examples_of(labels))
    asked = [r.messages[-1]["content"] for r in model.requests if ASK in r.messages[0]["content"]]
    assert [OWN.split()[0] in a for a in asked[:2]] == [True, True]
    assert all("wording 1:" in a for a in asked[2:])
    assert best_of(search.wordings).instructions == paraphrase(3)


def test_documents_with_one_output_are_compared_with_references(labels_of: Any, tmp_path: Path) -> None:
    labels = labels_of(12, 1, lambda n: n * 37 % 101)
    model = Model(leaning({0: 0.2, 1: 0.0}))
    search = ZEPO(candidates=1, pairs=6)
    search.compile(judge_of(tmp_path, model), trainset=examples_of(labels))
    assert best_of(search.wordings).instructions == paraphrase(1)
    assert search.wordings[0].fairness.comparisons == 12
    texts = [r.messages[-1]["content"] for r in model.requests if "wording 1" in r.messages[0]["content"]]
    assert all("reference of" in text for text in texts)


# -- what does not fit


def test_a_judge_that_does_not_compare_is_refused(server: Any, labels: Labels) -> None:
    student = ActiveCritic("vanilla", explain="before")
    for attempt in (
        lambda: ZEPO().compile(student, trainset=examples_of(labels)),
        lambda: ZEPO().proposals(student, 40),
    ):
        with pytest.raises(OptionError, match="which active-critic does not do; it is for --method pairwise-direct"):
            attempt()
    assert server.asks == []


# -- the contract of all optimizers, with a judge that compares


def test_a_validation_set_that_shares_a_document_is_refused(labels: Labels, tmp_path: Path) -> None:
    model = Model(leaning({}))
    train, val = examples_of(labels.subset(range(20))), examples_of(labels.subset(range(19, 40)))
    with pytest.raises(LeakError, match="group 'd004'"):
        ZEPO().compile(judge_of(tmp_path, model), trainset=train, valset=val)
    assert model.requests == []


def test_failures_are_counted_and_no_wording_that_fails_is_chosen(labels: Labels, tmp_path: Path) -> None:
    def odds(wording: int, first: str, second: str) -> Any:
        if wording == 1:
            return Unanswered("HTTP 400", again=False)
        return leaning({0: 0.2, 2: 0.1})(wording, first, second)

    search = ZEPO(candidates=2, pairs=4)
    search.compile(judge_of(tmp_path, Model(odds)), trainset=examples_of(labels))
    assert search.wordings[1].fairness.reason == "8 of 8 comparisons failed"
    assert search.wordings[1].to_dict()["fairness"] is None
    assert best_of(search.wordings).instructions == paraphrase(2)


@pytest.mark.parametrize("extra", [0, 30, 70])
def test_a_budget_is_kept_and_zero_shot_reported(extra: int, labels: Labels, tmp_path: Path) -> None:
    model = Model(leaning({0: 0.2, 1: 0.0}))
    judge = judge_of(tmp_path, model)
    judge.lm.meter.max_calls = 102 + extra  # the probe, zero-shot, and something of the rest
    search = ZEPO(candidates=2, pairs=4)
    compiled = search.compile(judge, trainset=examples_of(labels))
    assert len(model.requests) <= 102 + extra
    assert search.record is not None
    assert search.record.selected.name == "zero-shot"
    assert search.record.scored.failed == 0
    assert search.record.stopped == "the budget ran out; 1 of 2 candidates were tried"
    assert compiled.comparer.predict.signature.instructions == OWN
    judge.lm.meter.max_calls = judge.lm.meter.logical + 10
    with pytest.raises(BudgetError):
        ZEPO().compile(judge, trainset=examples_of(labels))


def test_the_same_seed_gives_the_same_record(labels: Labels, tmp_path: Path) -> None:
    def once(seed: int) -> Any:
        model = Model(lambda wording, first, second: (len(first) % 7 / 10, len(second) % 5 / 20 + wording / 50))
        search = ZEPO(candidates=2, pairs=5, seed=seed)
        compiled = search.compile(judge_of(tmp_path, model), trainset=examples_of(labels))
        assert search.record is not None
        told = [c.to_dict() for c in search.record.candidates], search.record.reason
        return told, compiled.comparer.predict.signature.instructions, [w.to_dict() for w in search.wordings]

    first = once(0)
    assert once(0) == first
    assert once(1)[2] != first[2]  # other pairs


def test_it_compiles_in_the_whole_run(labels: Labels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGESMITH_REFERENCES", str(tmp_path / "references.sqlite"))
    model = Model(leaning({0: 0.2, 1: 0.1, 2: 0.0}))
    search = build_optimizer("zepo", {"candidates": 2})
    assert isinstance(search, ZEPO)
    judge = PairwiseDirectScorer("fluency", levels=2)
    plan = Compiler(search=search).plan(judge, labels, "test/model")
    with pytest.raises(OptionError, match="which active-critic does not do"):  # before anything is spent
        Compiler(search=search).plan(ActiveCritic("vanilla"), labels, "test/model")
    made = js.compile(judge, labels, lm=model.lm(), optimizer=search)
    assert made.provenance["cost"]["calls"] <= plan.calls
    assert made.provenance["optimizer"]["name"] == "zepo"
    assert len(made.provenance["candidates"]) <= search.evaluations()
    assert any(note.startswith("the search: the fairest of 3 wordings") for note in made.provenance["notes"])
    made.save(tmp_path / "judge.json")
    loaded = js.load(tmp_path / "judge.json", lm=model.lm())
    assert loaded.score("Notice d001.", "Summary r003.").percent == made.score("Notice d001.", "Summary r003.").percent
