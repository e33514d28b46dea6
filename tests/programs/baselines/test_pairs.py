"""PairS: exact sorting, beam against greedy, the number of comparisons, failures, files' order, saving, compiling."""

import asyncio
import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judgesmith as js
from judgesmith.programs.answers.reply import Reply, TokenChoice
from judgesmith.programs.baselines.pairs import NO_OTHERS, PairS, Path, merged
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.transport import Request, Unanswered


class Model:
    """A model that answers comparisons by `better(first, second)`, the probability that the first text is better.

    An exception of `better` is the call's failure. The model keeps the pairs that it was asked for.
    """

    def __init__(
        self, better: Callable[[str, str], float], *, similar: float = 0.0
    ) -> None:
        self.better = better
        self.similar = similar
        self.pairs: list[tuple[str, str]] = []

    def __call__(self, request: Request) -> Any:
        text = request.messages[-1]["content"]
        first, second = (
            part.split("\n</output>")[0] for part in text.split("<output>\n")[1:3]
        )
        self.pairs.append((first, second))
        try:
            p = 1 - self.better(
                first, second
            )  # the question is how the second compares
        except Unanswered as failure:
            return failure
        odds = {
            "Better": p * (1 - self.similar),
            "Worse": (1 - p) * (1 - self.similar),
            "Similar": self.similar,
        }
        word = max(odds, key=lambda word: odds[word])
        alternatives = tuple((w, math.log(q)) for w, q in odds.items() if q > 0)
        return Reply(
            word,
            (TokenChoice(word, alternatives),),
            prompt_tokens=10,
            completion_tokens=1,
        )


def quality(text: str) -> int:
    return int(text.split()[1])


def sharp(first: str, second: str) -> float:
    return 0.9 if quality(first) > quality(second) else 0.1


def slight(first: str, second: str) -> float:
    return 0.51 if quality(first) > quality(second) else 0.49


def rows_of(document: str, qualities: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {"source": document, "output": f"Output {q} of {document}"} for q in qualities
    ]


def rank_of(verdict: Any) -> str:
    return str(verdict.notes[0])


# The merge, without a model


def merge(
    one: list[int], two: list[int], odds: dict[tuple[int, int], float], **how: Any
) -> tuple[Path, list[Any]]:
    """The merged order, and the pairs that were asked for."""
    asked: list[tuple[int, int]] = []

    async def prefer(a: int, b: int) -> float:
        asked.append((a, b))
        return odds[a, b]

    return asyncio.run(
        merged(one, two, prefer, **{"beam": 8, "margin": 0.1} | how)
    ), asked


X, Y, Z, W = range(4)
#: Runs x<y and z<w, truly x<z<w<y. The first looks at x go wrong by a hair; everything with y is clear.
NOISY = {(X, Z): 0.55, (X, W): 0.52, (Y, Z): 0.95, (Y, W): 0.9}


def test_a_beam_outweighs_an_early_mistake_that_greedy_keeps() -> None:
    greedy, asked = merge([X, Y], [Z, W], NOISY, beam=1)
    # z is worse than x (.55), then w is (.52), then x and y follow without a comparison: √(.55·.52) = .535
    assert greedy.order == (Z, W, X, Y)
    assert math.exp(greedy.mean) == pytest.approx(math.sqrt(0.55 * 0.52))
    assert asked == [(X, Z), (X, W)]
    beam, asked = merge([X, Y], [Z, W], NOISY)
    # x first (.45), then z below y (.95), w below y (.9): ∛.385 = .727; z, x, w, y has ∛(.55·.48·.9) = .619
    assert beam.order == (X, Z, W, Y)
    assert math.exp(beam.mean) == pytest.approx((0.45 * 0.95 * 0.9) ** (1 / 3))
    assert sorted(asked) == [(X, Z), (X, W), (Y, Z), (Y, W)]


def test_a_clear_comparison_is_not_followed_both_ways() -> None:
    clearer = NOISY | {(X, Z): 0.65}
    # .65 is further from .5 than .1, so that z stands first; then x and w both ways: ∛(.65·.48·.9) = .655 for
    # z, x, w, y, √(.65·.52) = .581 for z, w, x, y
    found, asked = merge([X, Y], [Z, W], clearer)
    assert found.order == (Z, X, W, Y)
    assert (Y, Z) not in asked
    # with a margin that .65 lies in, x first has ∛(.35·.95·.9) = .669
    found, asked = merge([X, Y], [Z, W], clearer, margin=0.2)
    assert found.order == (X, Z, W, Y)
    assert (Y, Z) in asked


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 4), st.integers(1, 4), st.randoms(use_true_random=False))
def test_a_wide_beam_finds_the_likeliest_of_all_orders(
    n: int, m: int, rng: random.Random
) -> None:
    one, two = list(range(n)), list(range(n, n + m))
    odds = {(a, b): rng.uniform(0.01, 0.99) for a in one for b in two}

    def likelihood(places: Sequence[int]) -> float:
        """Of the order in which the first run's outputs stand at these places: the mean of the logarithms."""
        i = j = 0
        logs = []
        for place in range(n + m):
            if i < n and j < m:
                p = odds[one[i], two[j]]
                logs.append(math.log(1 - p if place in places else p))
            if place in places:
                i += 1
            else:
                j += 1
        return math.fsum(logs) / len(logs)

    best = max(likelihood(places) for places in itertools.combinations(range(n + m), n))
    found, _ = merge(one, two, odds, margin=0.5)
    assert found.mean == pytest.approx(best)
    assert sorted(found.order) == one + two
    assert [x for x in found.order if x in one] == one
    assert [x for x in found.order if x in two] == two
    greedy, asked = merge(one, two, odds, margin=0.5, beam=1)
    assert greedy.mean <= found.mean + 1e-12
    assert len(asked) <= n + m - 1


# Ranking


@pytest.mark.parametrize("beam", [1, 8])
@pytest.mark.parametrize("m", range(2, 10))
def test_preferences_without_noise_sort_exactly(
    scripted: Any, m: int, beam: int
) -> None:
    for seed in range(3):
        model = Model(sharp)
        lm, transport = scripted(model, logprobs=True)
        shuffled = random.Random(seed).sample(range(m), m)
        verdicts = list(
            Judge(PairS("fluency", beam=beam), lm=lm).score_many(rows_of("d", shuffled))
        )
        assert [v.percent for v in verdicts] == pytest.approx(
            [100 * q / (m - 1) for q in shuffled]
        )
        assert [rank_of(v) for v in verdicts] == [
            f"rank {m - q} of {m}" for q in shuffled
        ]
        # no pair is far from certain, so that the beam asks for no more than greedy does
        assert len(transport.requests) <= m * math.ceil(math.log2(m))
        assert sum(v.usage.calls for v in verdicts) == len(transport.requests)
        assert len({frozenset(pair) for pair in model.pairs}) == len(
            model.pairs
        )  # none is asked twice


@pytest.mark.parametrize("beam", [1, 8])
def test_uncertain_preferences_cost_no_more_than_the_bound(
    scripted: Any, beam: int
) -> None:
    lm, transport = scripted(Model(slight), logprobs=True)
    judge = Judge(PairS("fluency", beam=beam, margin=0.5), lm=lm)
    verdicts = list(judge.score_many(rows_of("d", range(16))))
    assert [v.percent for v in verdicts] == pytest.approx(
        [100 * q / 15 for q in range(16)]
    )
    assert len(transport.requests) <= 16 * judge.method.cost().calls_per_row
    assert judge.method.cost().calls_per_row == {1: 4, 8: 8}[beam]  # ⌈log₂ 16⌉, ⌈15/2⌉
    if beam == 1:
        assert len(transport.requests) <= 16 * 4
    assert (
        PairS("fluency", order="both", reading="samples", samples=3)
        .cost()
        .calls_per_row
        == 8 * 2 * 3
    )


def test_similar_counts_half_for_each(scripted: Any) -> None:
    # .2·.1 + .8/2 = .42 for the worse one: within .1 of a half, but still the less likely
    lm, _ = scripted(Model(sharp, similar=0.8), logprobs=True)
    low, high = Judge(PairS("fluency"), lm=lm).score_many(rows_of("d", [1, 2]))
    assert (low.percent, high.percent) == (0.0, 100.0)
    assert high.notes[1].endswith("a probability of 0.58 in the geometric mean")


def test_documents_are_ranked_apart_and_verdicts_come_in_the_order_of_the_rows(
    scripted: Any,
) -> None:
    model = Model(sharp)
    lm, _ = scripted(model, logprobs=True)
    rows = [
        row
        for group in zip(
            rows_of("A", [3, 1, 2]),
            rows_of("B", [1, 2, 3]),
            rows_of("C", [7, 8, 9]),
            strict=True,
        )
        for row in group
    ]
    done: list[int] = []
    verdicts = list(
        Judge(PairS("fluency"), lm=lm).score_many(
            iter(rows), concurrency=2, progress=done.append
        )
    )
    assert [v.percent for v in verdicts] == [100, 0, 0, 0, 50, 50, 50, 100, 100]
    assert done == list(range(1, 10))
    assert all(
        first.split(" of ")[1] == second.split(" of ")[1]
        for first, second in model.pairs
    )


def test_the_order_of_rows_changes_nothing(scripted: Any) -> None:
    lm, _ = scripted(
        Model(lambda first, second: 0.5), logprobs=True
    )  # every preference is a toss-up
    found = []
    for seed in range(4):
        rows = random.Random(seed).sample(rows_of("d", range(7)), 7)
        verdicts = Judge(PairS("fluency"), lm=lm).score_many(rows)
        found.append(
            {row["output"]: v.percent for row, v in zip(rows, verdicts, strict=True)}
        )
    assert all(one == found[0] for one in found)


def test_equal_texts_share_a_rank_and_cost_once(scripted: Any) -> None:
    lm, transport = scripted(Model(sharp), logprobs=True)
    verdicts = list(
        Judge(PairS("fluency"), lm=lm).score_many(rows_of("d", [1, 2, 1, 2]))
    )
    assert [v.percent for v in verdicts] == [0.0, 100.0, 0.0, 100.0]
    assert rank_of(verdicts[3]) == "rank 1 of 2"
    assert len(transport.requests) == 1 == sum(v.usage.calls for v in verdicts)


def test_what_makes_a_document(scripted: Any) -> None:
    lm, _ = scripted(Model(sharp), logprobs=True)
    one, two = ("Output 1 x", "Output 2 x")

    def ranked(first: dict[str, Any], second: dict[str, Any]) -> bool:
        rows = [{"output": one} | first, {"output": two} | second]
        verdicts = list(Judge(PairS("fluency"), lm=lm).score_many(rows))
        assert all((v.failure == NO_OTHERS) == math.isnan(v.score) for v in verdicts)
        return [v.percent for v in verdicts] == [0.0, 100.0]

    assert ranked({"source": "s", "context": None}, {"source": "s", "context": ""})
    assert ranked({"group": 7}, {"group": "7"})
    assert ranked({"doc_id": "d"}, {"doc_id": "d"})
    assert ranked({"context": "c", "group": "g"}, {"context": "c", "group": "h"})
    assert not ranked({"source": "s", "group": "g"}, {"source": "t", "group": "g"})
    assert not ranked({"source": "s", "context": "c"}, {"source": "s", "context": "d"})
    assert not ranked({}, {})


# No score


def test_a_single_output_has_no_score_and_no_model_is_asked(scripted: Any) -> None:
    alone = js.Judge(PairS("fluency")).score("s", "o").failure  # without any model
    assert alone is not None
    assert "gives no score to a single one" in alone
    lm, transport = scripted(Model(sharp), logprobs=True)
    alone, empty = Judge(PairS("fluency"), lm=lm).score_many(
        [{"source": "s", "output": "o"}, {"source": "s", "output": " "}]
    )
    assert (alone.failure, empty.failure, transport.requests) == (
        NO_OTHERS,
        "the output is empty",
        [],
    )


def test_outputs_whose_comparison_failed_have_no_score_and_the_others_are_ranked(
    scripted: Any,
) -> None:
    def better(first: str, second: str) -> float:
        if 3 in (quality(first), quality(second)):  # the server refuses this text
            raise Unanswered("HTTP 400", again=False)
        return sharp(first, second)

    model = Model(better)
    lm, transport = scripted(model, logprobs=True)
    verdicts = list(Judge(PairS("fluency"), lm=lm).score_many(rows_of("d", range(8))))
    refused = [pair for pair in model.pairs if any(quality(text) == 3 for text in pair)]
    assert len(refused) == 1  # it is not tried against all others
    out = {quality(text) for text in refused[0]}
    assert {q for q, v in enumerate(verdicts) if v.failure} == out
    assert all(
        math.isnan(verdicts[q].score)
        and verdicts[q].failure
        == "a comparison with another output of its document failed: test/model: HTTP 400"
        for q in out
    )
    left = [q for q in range(8) if q not in out]
    assert [verdicts[q].percent for q in left] == pytest.approx(
        [100 * i / 5 for i in range(6)]
    )
    assert (
        "2 other outputs of this document could not be compared"
        in verdicts[left[0]].notes
    )
    assert sum(v.usage.calls for v in verdicts) <= len(transport.requests)


@pytest.mark.parametrize(
    ("m", "reasons"), [(2, {"failed"}), (3, {"failed", "the other outputs"})]
)
def test_where_all_comparisons_fail_nothing_is_ranked(
    scripted: Any, m: int, reasons: set[str]
) -> None:
    lm, _ = scripted(lambda _: "Well.", logprobs=True)
    verdicts = list(Judge(PairS("fluency"), lm=lm).score_many(rows_of("d", range(m))))
    assert all(math.isnan(v.score) for v in verdicts)
    said = [v.failure or "" for v in verdicts]
    assert all(any(reason in text for text in said) for reason in reasons)
    assert (
        sum(v.usage.calls for v in verdicts) == 2
    )  # one comparison, asked twice, then nobody is left
    assert [v.raw for v in verdicts if v.raw] == [("Well.", "Well.")]
