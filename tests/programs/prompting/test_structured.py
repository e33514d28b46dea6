"""Data in three notations are recognised and keep their values; prose and program code are left alone."""

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import table

from judgesmith.programs.prompting.structured import read_structured

DATA = table(__file__, "laid_out")


@pytest.mark.parametrize(("text", "listing"), DATA, ids=range(len(DATA)))
def test_data_are_laid_out(text: str, listing: str) -> None:
    assert read_structured(text) == listing


OTHERS = [
    "nation|gold\nfiji|3\nsamoa|1", "name: The Fig\neatType: pub\nfood: Thai", "",
    "The summit (3,000 m, they say) was closed | and so was the road.", "as shown[1], but not always[2]",
    "He [the king] said yes, she [the queen] did too[sic]", "[1]", "[1, 2]", "[ WP ] You wake up in a tower.",
    "A: hi | B: hello", "ls | sort | uniq", "x = a | b | c\ny = d | e | f", "x[0], y[1]", "{'a': 1, 'b': 2}",
    '{"a": ' * 5_000 + "1" + "}" * 5_000,
]  # fmt: skip


@pytest.mark.parametrize("text", OTHERS)
def test_prose_and_code_are_no_data(text: str) -> None:
    assert read_structured(text) is None


WORD = st.text(string.ascii_lowercase, min_size=1, max_size=8)
SENTENCE = st.builds(
    lambda words, mark, end: (mark.join(words)).capitalize() + end,
    st.lists(WORD, min_size=4, max_size=12),
    st.sampled_from([" ", ", ", " ", " (", ' "', " - ", ": "]),
    st.sampled_from([".", "!", "?", "...", '."']),
)


@settings(deadline=None, max_examples=100)
@given(st.lists(SENTENCE, min_size=1, max_size=6), st.sampled_from([" ", "\n", "\n\n"]))
def test_sentences_are_no_data(sentences: list[str], between: str) -> None:
    assert read_structured(between.join(sentences)) is None


LEAF = st.none() | st.booleans() | st.integers() | st.text(string.ascii_letters + " 'é", max_size=12)
TREE = st.recursive(LEAF, lambda below: st.lists(below, max_size=3) | st.dictionaries(WORD, below, max_size=3))


@settings(deadline=None, max_examples=100)
@given(st.dictionaries(WORD, TREE, min_size=1, max_size=4))
def test_json_keeps_every_leaf(data: dict[str, object]) -> None:
    found = read_structured(json.dumps(data, ensure_ascii=False))
    assert found is not None
    lines = found.split("\n")
    entries = 0
    stack: list[object] = list(data.values())
    while stack:
        value = stack.pop()
        entries += 1
        if isinstance(value, (dict, list)) and value:
            stack += value.values() if isinstance(value, dict) else value
            continue
        written = " ".join(value.split()) if isinstance(value, str) else json.dumps(value)
        assert any(line.endswith(f": {written}") for line in lines)
    assert len(lines) == entries  # nothing was added or joined
