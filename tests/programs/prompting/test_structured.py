"""Data in seven notations are recognised and lose nothing; prose, conversations and program code are left alone."""

import csv
import io
import json
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from judgesmith.programs.prompting.structured import read_structured

BOX_SCORE = """date: 03_02_17
home: Alpha Town | wins 3 losses 1 | PTS 90
visitor: Beta City | wins 2 losses 2 | PTS 81
player | team | start | MIN PTS REB (OREB DREB) FGM-FGA
Ann Archer | Alpha | F | 30 12 6 (1 5) 5-9
Bea Brook | Beta | - | 18 4 2 (0 2) 2-2
"""

DATA = [
    (
        '{"name": "The Fig", "eatType": "pub", "rating": 1.00, "open": true, "tags": ["new", {"id": null}], "no": []}',
        "json",
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
    ('{"a": 1, "a": 2}', "json", "- a: 1\n- a: 2"),
    ('[{"a": "5"}]', "json", '- 1:\n  - a: "5"'),  # the text "5" is not the number 5
    ('{"a": 1}\n{"a": 2}', "json", "- 1:\n  - a: 1\n- 2:\n  - a: 2"),
    ('{"eatType": "pub", "eat type": "bar"}', "json", "- eatType: pub\n- eat type: bar"),
    ("name: The Fig\neatType: pub\nfood: Thai", "attribute-value", "- name: The Fig\n- eat type: pub\n- food: Thai"),
    ("name: The Fig | food: Thai", "attribute-value", "- name: The Fig\n- food: Thai"),
    ("name[The Fig], priceRange[£20-25]", "attribute-value", "- name: The Fig\n- price range: £20-25"),
    ("name[The Fig],\narea[]", "attribute-value", '- name: The Fig\n- area: ""'),
    (
        '(The_Fig, area, "Ely, North") (The_Fig, openSince, 1999)',
        "rdf",
        "- The Fig\n  - area: Ely, North\n  - open since: 1999",
    ),
    ("[(The_Fig, area, Ely)]", "rdf", "- The Fig\n  - area: Ely"),
    (
        "The_Fig_(pub) | nearTo | Ely\nEly | country | England\nThe_Fig_(pub) | food | Thai",
        "rdf",
        "- The Fig (pub)\n  - near to: Ely\n  - food: Thai\n- Ely\n  - country: England",
    ),
    ("The Fig | area | Ely", "rdf", "- The Fig\n  - area: Ely"),
    ('"The_Fig area Ely"', "rdf", "- The Fig\n  - area: Ely"),
    ("fiji,3,4,0\nsamoa,1,0,2", "csv", "- row 1: fiji | 3 | 4 | 0\n- row 2: samoa | 1 | 0 | 2"),
    ("nation, gold\nfiji, 3\nsamoa, 1", "csv", "- row 1: nation: fiji; gold: 3\n- row 2: nation: samoa; gold: 1"),
    ("nation|gold\nfiji|3\nsamoa|1", "csv", "- row 1: nation: fiji; gold: 3\n- row 2: nation: samoa; gold: 1"),
    ("| a | b |\n|---|:-:|\n| x | y;z |", "csv", '- row 1: a: x; b: "y;z"'),
    ("a\tb\t5\nc\td\t6\n", "csv", "- row 1: a | b | 5\n- row 2: c | d | 6"),
    (
        "<page_title> Lakes </page_title> <table> <cell> 38 <col_header> Depth </col_header> </cell> </table>",
        "linearised table",
        "- page title: Lakes\n- table:\n  - cell: 38\n    - col header: Depth",
    ),
    ("<PLAYER> Ann Archer <PTS> 12", "linearised table", "- PLAYER: Ann Archer\n- PTS: 12"),
    (
        BOX_SCORE,
        "linearised table",
        """- date: 03_02_17
- home: Alpha Town; wins 3 losses 1; PTS 90
- visitor: Beta City; wins 2 losses 2; PTS 81
- row 1: player: Ann Archer; team: Alpha; start: F; MIN: 30; PTS: 12; REB: 6; OREB: 1; DREB: 5; FGM-FGA: 5-9
- row 2: player: Bea Brook; team: Beta; start: -; MIN: 18; PTS: 4; REB: 2; OREB: 0; DREB: 2; FGM-FGA: 2-2""",
    ),
    (
        "inform(name='joe's fig',price_range=cheap,near=\"a, b\"); request(area)",
        "dialogue act",
        "- inform:\n  - name: joe's fig\n  - price range: cheap\n  - near: a, b\n- request:\n  - area",
    ),
    ("reqmore()", "dialogue act", "- reqmore"),
]


@pytest.mark.parametrize(("text", "form", "listing"), DATA, ids=range(len(DATA)))
def test_data_are_laid_out(text: str, form: str, listing: str) -> None:
    found = read_structured(text)
    assert found is not None
    assert (found.format, found.show()) == (form, listing)


PROSE = [
    "",
    "A short sentence.",
    "The summit (3,000 m, they say) was closed | and so was the road.",
    "In the end: nothing happened.",
    "Roses, violets, and thyme,\nlilies, asters, and time,\ndaisies, poppies, and rhyme.",
    "Well, yes, I do\nOh, dear, me too",
    "On May 5, 2020\nOn June 6, 2021\nOn July 7, 2022",
    "It cost 1,000,000\nand then 2,000,000\nor 3,000,000",
    "1. a, b, c\n2. d, e, f\n3. g, h, i",
    "- one thing\n- another thing",
    "Title: A long road\nAuthor: Somebody\nText: It was a dark night and nobody came.",
    "Dear Anna: this is it\nRe: that",
    '"Hello there friend"',
    '"My iPhone broke"',
    "(Laughs, then, silence)",
    "(red, or, green)",
    "as shown[1], but not always[2]",
    "He [the king] said yes, she [the queen] did too[sic]",
    "[1]",
    "[ WP ] You wake up in a tower.",
    "<p>Hello</p> <div>you</div>",
    "<person> went to <city> yesterday.",
    "<person> loves <city>",
    '<a href="x">one</a>',
    "<name>Ann <b>bold</b></name>",
]
TALK = [
    "hi there\nhello , how are you ?\nfine , thanks",
    "A: hi\nB: hello",
    "A: hi\nB: hello\nC: hey",
    "Anna: hi there\nTom: hello\nAnna: bye",
    "User: where is it\nAssistant: over there",
    "speaker 1: hm\nspeaker 2: right\nspeaker 3: so",
    "Ann: where are you?\nBen: at home!\nCem: me too",
    "A: hi | B: hello",
    "<speaker1> hi <speaker2> hello",
    "<user> hi </user> <bot> hello </bot>",
]
CODE = [
    "ls | sort | uniq",
    "cat x | grep y\nls | wc",
    "if (a || b) {\n  x = a | b;\n}",
    "x = a | b | c\ny = d | e | f",
    "for i in x:\n  print(i)",
    "dict[str], list[int]",
    "x[0], y[1]",
    "foo(a,b,c)\nbar(d,e,f)\nbaz(g,h,i)",
    "confirm('are you sure?')",
    "print(x=5)",
    "color: red;\nmargin: 3px;\npadding: 2px;",
    "{'a': 1, 'b': 2}",
    "def f(a, b):\n    return a, b",
]


@pytest.mark.parametrize("text", PROSE + TALK + CODE)
def test_prose_talk_and_code_are_no_data(text: str) -> None:
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


@settings(deadline=None, max_examples=100)
@example([("Ann", "A a a a."), ("Ben", "A a a a."), ("Cem", 'A a a a."')])
@given(st.lists(st.tuples(st.sampled_from(["Ann", "Ben", "Cem", "Dora"]), SENTENCE), min_size=1, max_size=8))
def test_talk_in_sentences_is_no_data(turns: list[tuple[str, str]]) -> None:
    assert read_structured("\n".join(f"{who}: {words}" for who, words in turns)) is None


@settings(deadline=None, max_examples=300)
@given(st.text() | st.text("[](){}<>|,;:='\"ab1 \n_", max_size=60))
def test_nothing_raises(text: str) -> None:
    found = read_structured(text)
    assert found is None or (found.lines and found.show() == "\n".join(found.lines))


# Nothing is lost -----------------------------------------------------------------------------------------------------

#: Without the letters of the listing's names, so that a value that is found is the value.
VALUE = st.text(string.ascii_uppercase + string.digits + "£-'é", min_size=1, max_size=8).map(lambda v: f"Q{v}")
VALUES = st.lists(VALUE, min_size=3, max_size=6)
NAMES = ("name", "eatType", "customer_rating", "food", "area", "price range")


def kept(text: str, form: str, values: list[str]) -> None:
    found = read_structured(text)
    assert found is not None
    assert found.format == form
    shown = found.show()
    for value in set(values):
        assert shown.count(value) >= values.count(value)


@settings(deadline=None, max_examples=60)
@example(["Q0", "Q-I", "Q'DO"])
@example(["Q0", "Q£WE", "Q'-IS"])
@given(VALUES)
def test_attributes_keep_their_values(values: list[str]) -> None:
    pairs = list(zip(NAMES, values, strict=False))
    kept("\n".join(f"{n}: {v}" for n, v in pairs), "attribute-value", values)
    kept(" | ".join(f"{n}: {v}" for n, v in pairs), "attribute-value", values)
    kept(", ".join(f"{n}[{v}]" for n, v in pairs), "attribute-value", values)
    kept("inform(" + ",".join(f"{n}='{v}'" for n, v in pairs) + ")", "dialogue act", values)


@settings(deadline=None, max_examples=60)
@given(VALUES)
def test_triples_keep_their_things(values: list[str]) -> None:
    triples = [("The_Fig", "hasPart", value) for value in values]
    kept("\n".join(" | ".join(t) for t in triples), "rdf", values)
    kept(" ".join(f"({', '.join(t)})" for t in triples), "rdf", values)
    kept("\n".join(f'"{" ".join(t)}"' for t in triples), "rdf", values)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(VALUE, VALUE, st.integers(0, 999)), min_size=3, max_size=5), st.booleans())
def test_tables_keep_their_cells(rows: list[tuple[str, str, int]], header: bool) -> None:
    table = ([("team", "city", "points")] if header else []) + rows
    values = [value for row in rows for value in row[:2]]
    buffer = io.StringIO()
    csv.writer(buffer).writerows(table)
    kept(buffer.getvalue(), "csv", values)
    kept("\n".join(" | ".join(map(str, row)) for row in table), "csv", values)
    tagged = " ".join(f"<cell> {a} <col_header> {b} </col_header> </cell>" for a, b, _ in rows)
    kept(f"<table> {tagged} </table>", "linearised table", values)


LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12)
TREE = st.recursive(
    LEAF, lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3)
)


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(st.text(max_size=5), TREE, min_size=1, max_size=4))
def test_json_keeps_every_leaf(data: dict[str, object]) -> None:
    found = read_structured(json.dumps(data, ensure_ascii=False))
    assert found is not None
    assert found.format == "json"
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
        assert any(line.endswith((f": {plain}", f": {written}")) for line in found.lines)
    assert len(found.lines) == entries  # nothing was added or joined


def test_very_deep_data_are_left_as_they_are() -> None:
    for depth in (40, 5_000):
        assert read_structured('{"a": ' * depth + "1" + "}" * depth) is None
        assert read_structured("<x><y>" * depth + "</y></x>" * depth) is None
