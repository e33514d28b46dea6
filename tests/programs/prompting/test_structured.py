"""Data in four notations are recognised and lose nothing; prose, conversations and program code are left alone."""

import json
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from judgesmith.programs.prompting.structured import read_structured

DATA = [
    (
        '{"name": "The Fig", "eatType": "pub", "rating": 1.00, "open": true, "tags": ["new", {"id": null}], "no": []}',
        """- name: The Fig
- eat type: pub
- rating: 1.00
- open: true
- tags:
  - 1: new
  - 2:
    - id: null
- no: []""",
    ),
    ('{"a": 1, "a": 2}', "- a: 1\n- a: 2"),
    ('[{"a": "5"}]', '- 1:\n  - a: "5"'),  # the text "5" is not the number 5
    ('{"a": 1}\n{"a": 2}', "- 1:\n  - a: 1\n- 2:\n  - a: 2"),
    ('{"eatType": "pub", "eat type": "bar"}', "- eatType: pub\n- eat type: bar"),
    ("name[The Fig], priceRange[£20-25]", "- name: The Fig\n- price range: £20-25"),
    ("name[The Fig],\narea[]", '- name: The Fig\n- area: ""'),
    (
        "The_Fig_(pub) | nearTo | Ely\nEly | country | England\nThe_Fig_(pub) | food | Thai",
        "- The Fig (pub)\n  - near to: Ely\n  - food: Thai\n- Ely\n  - country: England",
    ),
    (
        "inform(name='joe's fig',price_range=cheap,near=\"a, b\"); request(area)",
        "- inform:\n  - name: joe's fig\n  - price range: cheap\n  - near: a, b\n- request:\n  - area",
    ),
    ("reqmore()", "- reqmore"),
]


@pytest.mark.parametrize(("text", "listing"), DATA, ids=range(len(DATA)))
def test_data_are_laid_out(text: str, listing: str) -> None:
    assert read_structured(text) == listing


PROSE = [
    "nation|gold\nfiji|3\nsamoa|1",
    "name: The Fig\neatType: pub\nfood: Thai",
    "",
    "A short sentence.",
    "The summit (3,000 m, they say) was closed | and so was the road.",
    "(Laughs, then, silence)",
    "(red, or, green)",
    "as shown[1], but not always[2]",
    "He [the king] said yes, she [the queen] did too[sic]",
    "[1]",
    "[ WP ] You wake up in a tower.",
]
CODE = [
    "A: hi | B: hello",
    "ls | sort | uniq",
    "cat x | grep y\nls | wc",
    "if (a || b) {\n  x = a | b;\n}",
    "x = a | b | c\ny = d | e | f",
    "dict[str], list[int]",
    "x[0], y[1]",
    "foo(a,b,c)\nbar(d,e,f)\nbaz(g,h,i)",
    "confirm('are you sure?')",
    "print(x=5)",
    "{'a': 1, 'b': 2}",
    "def f(a, b):\n    return a, b",
]


@pytest.mark.parametrize("text", PROSE + CODE)
def test_prose_and_code_are_no_data(text: str) -> None:
    assert read_structured(text) is None


WORD = st.text(string.ascii_lowercase, min_size=1, max_size=8)
SENTENCE = st.builds(
    lambda words, mark, end: (mark.join(words)).capitalize() + end,
    st.lists(WORD, min_size=4, max_size=12),
    st.sampled_from([" ", ", ", " ", " (", ' "', " - ", ": "]),
    st.sampled_from([".", "!", "?", "...", '."']),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(SENTENCE, min_size=1, max_size=6), st.sampled_from([" ", "\n", "\n\n"]))
def test_sentences_are_no_data(sentences: list[str], between: str) -> None:
    assert read_structured(between.join(sentences)) is None


@settings(deadline=None, max_examples=300)
@given(st.text() | st.text("[](){}<>|,;:='\"ab1 \n_", max_size=60))
def test_nothing_raises(text: str) -> None:
    assert read_structured(text) != ""


# Nothing is lost -----------------------------------------------------------------------------------------------------

#: Without the letters of the listing's names, so that a value that is found is the value.
VALUE = st.text(string.ascii_uppercase + string.digits + "£-'é", min_size=1, max_size=8).map(lambda v: f"Q{v}")
VALUES = st.lists(VALUE, min_size=3, max_size=6)
NAMES = ("name", "eatType", "customer_rating", "food", "area", "price range")


def kept(text: str, values: list[str]) -> None:
    shown = read_structured(text)
    assert shown is not None
    for value in set(values):
        assert shown.count(value) >= values.count(value)


@settings(deadline=None, max_examples=60)
@example(["Q0", "Q-I", "Q'DO"])
@example(["Q0", "Q£WE", "Q'-IS"])
@given(VALUES)
def test_attributes_keep_their_values(values: list[str]) -> None:
    pairs = list(zip(NAMES, values, strict=False))
    kept(", ".join(f"{n}[{v}]" for n, v in pairs), values)
    kept("inform(" + ",".join(f"{n}='{v}'" for n, v in pairs) + ")", values)


@settings(deadline=None, max_examples=60)
@given(VALUES)
def test_triples_keep_their_things(values: list[str]) -> None:
    triples = [("The_Fig", "hasPart", value) for value in values]
    kept("\n".join(" | ".join(t) for t in triples), values)


LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12)
TREE = st.recursive(
    LEAF, lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3)
)


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(st.text(max_size=5), TREE, min_size=1, max_size=4))
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
        written = json.dumps(value, ensure_ascii=False)
        plain = value if isinstance(value, str) else written
        assert any(line.endswith((f": {plain}", f": {written}")) for line in lines)
    assert len(lines) == entries  # nothing was added or joined


def test_very_deep_data_are_left_as_they_are() -> None:
    for depth in (40, 5_000):
        assert read_structured('{"a": ' * depth + "1" + "}" * depth) is None
