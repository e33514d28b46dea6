"""Demonstrations that each input chooses for itself: similarity, order, exclusion, and the saved pool."""

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgesmith.errors import ArtifactError
from judgesmith.programs import artifact
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.prompting.neighbours import (
    MOST_CHARACTERS,
    MOST_OF_A_ROW,
    MOST_ROWS,
    MOST_SHOWN,
    Neighbours,
    _FieldIndex,
    fits_pool,
    trigrams,
)
from judgesmith.signatures.values import Criterion, Item

TEXT = st.text(max_size=40)


def demo(output: str, group: str | None = None, score: float = 50.0, **more: Any) -> dict[str, Any]:
    told = {"source": "", "output": output, "group": group, "score": score, "augmented": False, "gold": True}
    return told | more


def outputs(found: list[Any]) -> list[str]:
    return [d["output"] for d in found]


# -- similarity


def test_trigrams_know_neither_case_nor_white_space() -> None:
    assert trigrams("Ab  a") == {" ab": 1, "ab ": 1, "b a": 1, " a ": 1}  # of " ab a "
    assert trigrams(" \n") == {}
    assert trigrams("aaaa") == {" aa": 1, "aaa": 2, "aa ": 1}


def test_cosine_by_hand() -> None:
    index = _FieldIndex(["ab", "bc"])  # " ab", "ab " and " bc", "bc ": nothing in common
    assert index.similarity("ab").tolist() == pytest.approx([1.0, 0.0])
    # "abx" is " ab", "abx", "bx ". Known: " ab" with idf 1 + ln(3/2); unknown, twice: idf 1 + ln 3.
    known, unknown = 1 + math.log(3 / 2), 1 + math.log(3)
    expected = known * known / (math.sqrt(2 * known**2) * math.sqrt(known**2 + 2 * unknown**2))
    assert index.similarity("abx").tolist() == pytest.approx([expected, 0.0])
    assert index.similarity("").tolist() == [0.0, 0.0]
    assert _FieldIndex(["", " "]).similarity("ab").tolist() == [0.0, 0.0]


def test_a_long_source_does_not_drown_the_output() -> None:
    long = "The council met on Monday and spoke about the bridge across the river. " * 30
    pool = Neighbours(1, [
        demo("The dog barks at night.", source=long),
        demo("Bridges need new paint soon.", source="Weather: rain and wind until Friday."),
    ])  # fmt: skip
    inputs = {"source": "Weather: rain and wind until Sunday.", "output": "The dog barks at noon."}
    # Alone, the output is like the first one's and the source like the second one's; both count half.
    index = [_FieldIndex([d[name] for d in pool]).similarity(inputs[name]) for name in ("source", "output")]
    assert index[0][1] > 0.6 > index[0][0]
    assert index[1][0] > 0.6 > index[1][1]
    mean = (index[0] + index[1]) / 2
    assert outputs(pool.nearest(inputs, range(len(pool)))) == [pool[int(mean.argmax())]["output"]]


# -- the choice


POOL = (
    demo("The cat sat on the mat.", "d0"),
    demo("The cat sat on a mat today.", "d1"),
    demo("Interest rates were raised again.", "d2"),
    demo("The cat sat on the mat!", "d0"),
    demo("Interest rates fell.", "d3"),
)


def test_the_most_similar_stands_last_and_a_group_once() -> None:
    pool = Neighbours(3, POOL)
    nearest = outputs(pool.nearest({"output": "The cat sat on the mat"}, range(len(pool))))
    assert len(nearest) == 3
    # "The cat sat on the mat!" is as near, but of a group that is shown already.
    assert nearest[-2:] == ["The cat sat on a mat today.", "The cat sat on the mat."]
    assert outputs(pool.nearest({"output": "Interest rates"}, [0, 2])) == [POOL[0]["output"], POOL[2]["output"]]
    assert pool.nearest({"output": "x"}, []) == Neighbours(2).nearest({"output": "x"}, []) == []


def test_equally_similar_rows_come_in_the_order_of_the_pool() -> None:
    twins = [demo("Same text.", f"d{i}", score=i) for i in range(5)]
    found = Neighbours(3, twins).nearest({"output": "Same text, nearly."}, range(5))
    assert [d["score"] for d in found] == [2, 1, 0]
    unlike = Neighbours(2, twins).nearest({"output": "漢字"}, range(5))
    assert [d["score"] for d in unlike] == [1, 0]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(TEXT, TEXT, st.sampled_from(["a", "b", "c", None])), max_size=8),
    TEXT,
    TEXT,
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_any_pool_and_any_input(rows: Any, source: str, output: str, shown: int, draw: Any) -> None:
    pool = Neighbours(shown, [demo(o, g, source=s) for s, o, g in rows])
    allowed = [i for i in range(len(pool)) if draw.random() < 0.7]
    inputs = {"source": source, "output": output}
    found = pool.nearest(inputs, allowed)
    assert len(found) <= shown
    assert all(any(d is pool[i] for i in allowed) for d in found)
    named = [d["group"] for d in found if d["group"]]
    assert len(set(named)) == len(named)
    assert pool.nearest(inputs, allowed) == found
    # Fewer are the nearest of more.
    fewer = Neighbours(1, pool).nearest(inputs, allowed)
    assert fewer == found[-1:]


def test_a_pool_is_bounded() -> None:
    assert fits_pool([["ab", "c"]] * 500) == list(range(MOST_ROWS))
    some = "x" * (MOST_CHARACTERS - 2 * MOST_OF_A_ROW)
    longest = "x" * MOST_OF_A_ROW
    assert fits_pool([[longest, ""], [longest, "x"], [longest], [some + "x"], [some], ["y"]]) == [0, 2, 4]
    assert fits_pool([]) == []


# -- in a judge


def judge(shown: int = 2, variant: Any = "coarse", **options: Any) -> ActiveCritic:
    made = ActiveCritic(
        variant, explain="before", reading="said", criteria=(Criterion("Truth", "It is true."),), **options
    )
    for predictor in made.taught():
        predictor.demos = Neighbours(shown, [dict(d) for d in POOL])
    return made


def shown_to(made: ActiveCritic, item: Item) -> str:
    return str(next(iter(made.previews(item).values()))[0]["content"])


def test_a_row_never_sees_itself_or_its_group() -> None:
    made = judge(shown=4)
    own = shown_to(made, Item("The cat sat on the mat.", group="d0"))
    assert "on the mat" not in own
    assert "on a mat today" in own
    same_text = shown_to(made, Item("The cat sat on the mat.", group="d9"))
    assert "sat on the mat.\n" not in same_text and "sat on the mat!" not in same_text  # the same words


def test_copies_keep_the_pool_and_taking_demonstrations_away_takes_it_away() -> None:
    made = judge(shown=1)
    twin = made.copy_for()
    item = Item("Interest rates!")
    assert isinstance(twin.predictors()[0].demos, Neighbours)
    assert twin.previews(item) == made.previews(item)
    assert copy.deepcopy(made.predictors()[0].demos).shown == 1
    made.settle(explain="none", reading="said")
    assert isinstance(made.predictors()[0].demos, Neighbours)
    made.predictors()[0].demos = []
    assert "Interest" not in made.previews(item)["overall_scorer"][0]["content"]


@pytest.mark.parametrize("variant", ["coarse", "fine"])
def test_a_loaded_judge_shows_the_same_neighbours(variant: str, tmp_path: Path) -> None:
    made = judge(variant=variant)
    made.save(tmp_path / "judge.json")
    loaded = artifact.load(tmp_path / "judge.json")
    for item in (Item("Interest rates."), Item("A cat!", group="d1"), Item("漢字", "source"), Item("The cat sat")):
        assert loaded.previews(item) == made.previews(item)
    assert artifact.dumps(loaded) == artifact.dumps(made)
    assert artifact.fingerprint(judge(1, variant)) != artifact.fingerprint(judge(2, variant))
    for saved in json.loads((tmp_path / "judge.json").read_text())["state"].values():
        assert saved["neighbours"] == 2
        assert len(saved["demos"]) == len(POOL)


@pytest.mark.parametrize("forged", [0, -1, MOST_SHOWN + 1, 2.5, "2", True, [2]])
def test_a_forged_number_of_neighbours_is_refused(forged: Any, tmp_path: Path) -> None:
    path = tmp_path / "judge.json"
    judge().save(path)
    artifact.load(path)
    data = json.loads(path.read_text())
    data["state"]["overall_scorer.predict"]["neighbours"] = forged
    path.write_text(json.dumps(data))
    with pytest.raises(ArtifactError, match="neighbours"):
        artifact.load(path)
