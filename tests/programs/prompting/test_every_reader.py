"""Every reader of answers that the library has × every mark of thoughts, every form of a score, and every fault."""

import importlib
import math
import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import judgesmith
from judgesmith.programs.answers.reading import Read
from judgesmith.programs.answers.reply import Reply, TokenChoice
from judgesmith.programs.openlgauge.annotation import (
    AnnotationLayout,
    Focus,
    MergeLayout,
)
from judgesmith.programs.prompting.layouts import (
    CriteriaLayout,
    CriteriaListLayout,
    Layout,
    OverallLayout,
    SentencesLayout,
    TextLayout,
)
from judgesmith.signatures.values import Criterion

for room in ("programs", "rooms.discerning", "rooms.training"):
    package = importlib.import_module(f"judgesmith.{room}")
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if "torch" not in found.name and "student" not in found.name:
            importlib.import_module(found.name)

CRITERIA = (Criterion("Tone", "Polite."), Criterion("Facts", "True."))
OUTPUT = "We send a lamp at no cost."
INPUTS: dict[str, Any] = {
    "criteria": CRITERIA,
    "output": OUTPUT,
    "source": "A letter.",
    "focus": Focus("fluency"),
}
ERROR = "Error 1\nLocation: {}\nExplanation: {}\nSeverity: {}"

#: Of each reader how it is made, an answer, and another one that the model thinks of first and drops.
SAMPLES: dict[str, tuple[dict[str, Any], str, str]] = {
    "OverallLayout": (
        {},
        "Explanation: It is fine.\nScore: 80",
        "Explanation: It is rude.\nScore: 20",
    ),
    "StepsScoreLayout": ({}, "Score: 4", "Score: 2"),
    "CriteriaLayout": (
        {},
        "Tone: It is kind.\nScore: 80\nFacts: All is right.\nScore: 90",
        "Tone: It is rude.\nScore: 10\nFacts: Nothing is.\nScore: 20",
    ),
    "TextLayout": (
        {"field": "task", "rule": "r", "tokens": 9},
        "Judge the politeness.",
        "The user wants a task.",
    ),
    "SentencesLayout": (
        {"field": "explanation", "rule": "r", "tokens": 9},
        "It is polite.",
        "It may be rude.",
    ),
    "StepsLayout": (
        {"field": "steps", "rule": "r", "tokens": 9},
        "1. Read it.\n2. Weigh it.",
        "1. Count.\n2. Guess.",
    ),
    "_Again": (
        {"field": "changed", "rule": "r", "tokens": 9},
        "A cat sat there.",
        "A dog ran off.",
    ),
    "CriteriaListLayout": (
        {},
        '{"criteria": [{"name": "Tone", "definition": "It is kind."}]}',
        '{"criteria": [{"name": "Draft", "definition": "A draft only."}]}',
    ),
    "WordsLayout": ({}, "Rating: Good", "Rating: Poor"),
    "QuestionsLayout": (
        {},
        "1: Yes\n2: Yes\n3: Yes\n4: No\n5: No",
        "1: No\n2: No\n3: No\n4: No\n5: No",
    ),
    "ComparisonLayout": ({"sampled": True}, "Better", "Worse"),
    "AnnotationLayout": (
        {},
        f"{ERROR.format('at no cost', 'Not promised.', 2)}\n\nOverall: Good\nReason: One slip.",
        f"{ERROR.format('a lamp', 'Which one?', 5)}\n\nOverall: Poor\nReason: Bad.",
    ),
    "MarkedLayout": (
        {},
        f"{ERROR.format('at no cost', 'Not promised.', 2)}\n\nScore: 4",
        f"{ERROR.format('a lamp', 'Which one?', 5)}\n\nScore: 2",
    ),
    "MergeLayout": (
        {},
        ERROR.format("at no cost", "Not promised.", 2),
        ERROR.format("a lamp", "Which one?", 5),
    ),
    "WritingLayout": ({}, "The hall closes for repairs.", "Nothing in it is true."),
}


def readers(of: type[Layout] = Layout) -> Iterator[type[Layout]]:
    """Every layout of the library that reads answers."""
    for layout in of.__subclasses__():
        if (
            layout.__module__.startswith(judgesmith.__name__)
            and ".bench." not in layout.__module__
            and layout.extract is not Layout.extract
        ):
            yield layout
        yield from readers(layout)


READERS = {layout.__name__: layout for layout in readers()}


def test_every_reader_of_the_library_is_in_this_table() -> None:
    assert set(READERS) == set(SAMPLES)


def made(name: str) -> tuple[Layout, str, str]:
    options, answer, draft = SAMPLES[name]
    return READERS[name](**options), answer, draft


def read(name: str, text: str, finish: str = "stop") -> Read:
    found = made(name)[0].read(Reply(text, finish=finish), INPUTS)
    if (
        "annotation" in found.values
    ):  # where in an answer its label stands is another place behind thoughts
        found.values["annotation"] = replace(
            found.values["annotation"], label_start=None, repaired=False
        )
    return found


# Thoughts

NAMES = (
    "think",
    "thinking",
    "thought",
    "thoughts",
    "reasoning",
    "reflection",
    "scratchpad",
    "inner_monologue",
)
MARKS = {
    **{f"<{name}>": (f"<{name}>", f"</{name}>") for name in NAMES},
    **{
        f"<{name.upper()}>": (f"<{name.upper()}>", f"</{name.upper()}>")
        for name in NAMES[:2]
    },
    "spaces": ("<think >", "</think >"),
    "more spaces": ("< think>", "< / think >"),
    "attributes": ('<thinking level="high" id=3>', "</thinking>"),
    "another closing mark": ("<think>", "</thinking>"),
    "doubao": ("<think_never_used_51bce0c785>", "</think_never_used_51bce0c785>"),
    "seed": ("<seed:think>", "</seed:think>"),
    "magistral": ("[THINK]", "[/THINK]"),
    "brackets": ("[thinking]", "[/thinking]"),
    "kimi": ("◁think▷", "◁/think▷"),
    "begin of": ("<|begin_of_thought|>", "<|end_of_thought|>"),
    "with a solution": (
        "<|begin_of_thought|>",
        "<|end_of_thought|>\n<|begin_of_solution|>",
    ),
    "cohere": ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    "start": ("<|thinking_start|>", "<|thinking_end|>"),
    "bars": ("<｜think｜>", "<｜/think｜>"),
    "gemma": ("<unused94>thought\n", "<unused95>"),
    "gemma 4": ("<|channel>thought\n", "<channel|>"),
    "apertus": ("<|inner_prefix|>", "<|inner_suffix|>"),
    "fence": ("```thinking\n", "\n```\n"),
    "page": ('<details type="reasoning" done="true">', "</details>"),
    "granite": ("Here is my thought process:\n", "\nHere is my response:\n"),
    "harmony": (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
    "harmony, from its start": (
        "<|start|>assistant<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>commentary<|message|>Hm.<|end|><|channel|>final<|message|>",
    ),
    "harmony, held to a form": (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>",
    ),
    "harmony without marks": ("analysis", "assistantfinal"),
    "draft": ("<draft>", "</draft>"),
    "planning": ("<planning>", "</planning>"),
    "self-reflection": ("<self_reflection>", "</self_reflection>"),
    "process": ("<reasoning_process>", "</reasoning_process>"),
    "ollama": ("Thinking...\n", "\n...done thinking.\n"),
    "apriel": ("Here are my reasoning steps:\n", "\n[BEGIN FINAL RESPONSE]\n"),
    "headings": ("### Thinking\n", "\n### Final answer\n"),
    "bold": ("**Thought process:**\n", "\n**Answer:**\n"),
}
#: Marks of a beginning that alone is none.
NO_BEGINNING = ("apriel", "headings", "bold")
#: Marks that a server may drop at the beginning, since its template ends with them.
ALONE = [
    name
    for name in MARKS
    if name
    not in ("fence", "page", "granite", "harmony without marks", "headings", "bold")
]


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("name", READERS)
def test_thoughts_are_not_read(name: str, mark: str) -> None:
    _, answer, draft = made(name)
    opening, closing = MARKS[mark]
    right = read(name, answer)
    assert right.problem is None
    for thoughts in (
        f"{opening}{draft}{closing}",
        f"{opening}\n{draft}\nNo, a lazy draft.\n{closing}\n\n",
    ):
        if "without marks" in mark:
            thoughts = thoughts.replace(f"{opening}\n", opening).replace(
                f"{closing}\n\n", closing
            )
        found = read(name, thoughts + answer)
        assert (found.problem, repr(found.values)) == (
            None,
            repr(right.values),
        )  # NaN is in some


@pytest.mark.parametrize("mark", ALONE)
@pytest.mark.parametrize("name", READERS)
def test_a_closing_mark_alone_ends_thoughts(name: str, mark: str) -> None:
    _, answer, draft = made(name)
    found = read(name, f"{draft}\nNo, a lazy draft.\n{MARKS[mark][1]}\n{answer}")
    assert (found.problem, repr(found.values)) == (
        None,
        repr(read(name, answer).values),
    )


@pytest.mark.parametrize("mark", [mark for mark in MARKS if mark not in NO_BEGINNING])
@pytest.mark.parametrize("name", READERS)
def test_thoughts_that_never_end_are_no_answer(name: str, mark: str) -> None:
    _, _, draft = made(name)
    found = read(name, f"{MARKS[mark][0]}{draft}", "length")
    assert (found.problem, found.values, found.final) == (
        "cut off while thinking",
        {},
        True,
    )
    only = read(name, f"{MARKS[mark][0]}{draft}{MARKS[mark][1]}")
    assert (only.problem or "").startswith(
        ("only thoughts came", "cut off while thinking")
    )


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "last",
    [
        "<|im_end|>",
        "</s>",
        "<|eot_id|>",
        "<|return|>",
        " [/INST]",
        "<end_of_turn>\n",
        "<eos>",
    ],
)
def test_the_tokens_that_end_a_turn_are_no_part_of_it(name: str, last: str) -> None:
    _, answer, _ = made(name)
    assert repr(read(name, answer + last).values) == repr(read(name, answer).values)


@pytest.mark.parametrize(
    "quoted",
    ["</think>", "<think>", "[/THINK]", "<|channel|>", "`</thinking>`", '"<think>"'],
)
def test_a_mark_inside_a_sentence_is_a_quotation(quoted: str) -> None:
    for text in (
        f"Explanation: It has a stray {quoted} tag in it.\nScore: 80",
        f"Score: 80\nExplanation: It has {quoted} in it.",
    ):
        found = read("OverallLayout", text)
        assert (found.problem, found.values["score"]) == (None, 80.0)
        assert quoted.strip("`\"'") in found.values["explanation"]
    place = ERROR.format(f"a {quoted} tag", "A stray mark.", 2)
    found = AnnotationLayout().read(
        Reply(f"{place}\n\nOverall: Good\nReason: One slip."), INPUTS
    )
    assert [error.location for error in found.values["annotation"].errors] == [
        f"a {quoted} tag"
    ]


def test_tokens_stay_with_their_characters() -> None:
    text = "<think>Score: 2</think>\nScore: \u200b4\u200e"
    tokens = [TokenChoice(letter, ((letter, 0.0),)) for letter in text]
    place = text.index("4")
    tokens[place] = TokenChoice("4", (("4", math.log(0.5)), ("5", math.log(0.5))))
    found = OverallLayout("none", "expected").read(Reply(text, tuple(tokens)), {})
    assert found.values["score"] == pytest.approx(87.5)  # 4.5 → 3.5/4


# Forms of one score

NUMBERS = [
    "4",
    "four",
    "Four",
    "④",
    "⁴",
    "４",
    "٤",
    "4️⃣",
    "**4**",
    '"4"',
    "4.0",
    "\\boxed{4}",
    "$\\boxed{4}$",
    "[[4]]",
]
CLEAR = [
    *(f"Score: {number}" for number in NUMBERS),
    *(
        f"Score: {more}"
        for more in (
            "4/5",
            "4 out of 5",
            "4 (out of 5)",
            "4 points",
            "4.",
            "4 stars",
            "4, since it is so",
        )
    ),
    *(
        f"{label}4"
        for label in (
            "Score:\u200b",
            "Score\u200b: ",
            "Score:\ufeff",
            "Score: \u2060",
            "Score:\u00a0",
            "\u200fScore: ",
        )
    ),
    *(
        f"{label} 4"
        for label in (
            "**Score:**",
            "Score =",
            "Score -",
            "SCORE:",
            "Final Score:",
            "Overall rating:",
            "Score：",
        )
    ),
    *(
        f"{label}4"
        for label in (
            "### Score\n",
            "**Score**\n",
            "Score:\n",
            "评分：",
            "Bewertung: ",
            "得分: ",
            "Note : ",
        )
    ),
    *("<score>4</score>", '<score value="4"/>', "\\boxed{4}", "I give it a 4."),
    *(
        '{"score": 4}',
        '{"final": "{\\"score\\": 4}"}',
        '{"result": {"score": {"value": 4}}}',
        '[{"score": "4/5"}]',
    ),
    *(
        "4\nIt is kind.",
        "It is kind.\n4",
        "4/5\nGood, with 2 slips.",
        "4 - It is kind.",
    ),
    *(
        "Score 4\nIt is kind.",
        "คะแนน: 4",
        "ציון: 4",
        "Điểm số: 4",
        "امتیاز: 4",
        "Skor: 4",
    ),
    *('<evaluation score="4">Kind.</evaluation>', "<r why='x' rating='4'/>"),
    *(
        'Here is my verdict: {"score": 4, "reason": "x"} Let me know.',
        'My final answer is {"score": 4}.',
        'I looked twice. Result: `{"score": 4}`',
        '<json>{"score": 4}</json>',
    ),
    *(
        "| Criterion | Score |\n|---|---|\n| Overall | 4 |",
        "| Score | Reason |\n|---|---|\n| 4 | Kind. |",
        "| Criterion | Score |\n|---|---|\n| Tone | 2 |\n| **Overall** | **4** |",
        "| **Rating:** | 4 |\n| Reason | Kind. |",
        "Criterion | Score\n--- | ---\nTotal | 4/5",
    ),
    *(
        "<step_1>\nScore: 2\n</step_1>\nScore: 4",
        "<musing>\nScore: 2\n</musing>\n<final>\nScore: 4\n</final>",
    ),
    *(
        '"{\\"score\\": 4}"',
        "{'score': 4}",
        '```json\n{"score": 4}\n```',
        'Here:\n```\n{"score": 4}\n```\nDone.',
    ),
]
UNREADABLE = [
    *(
        "N/A",
        "",
        "eighty-ish",
        "4,5",
        "4-5",
        "4 or 5",
        "8 0",
        "<4",
        ">4",
        "~4",
        "≥ 4",
        "4+",
        "0x4",
        "4_0",
        "4½",
        "4²",
    ),
    *(
        "1_00",
        "3\u202e0",
        "\u202e4",
        "4?",
        "4e0",
        "<number>",
        "between 3 and 4",
        "4 items were missing",
        "four or five",
    ),
]
ASIDES = [
    *(
        "Not a score: 4 as some say.",
        "A rash rating: 4 would be wrong.",
        "The score: 4 items were missing.",
    ),
    *(
        "Let me think. A first score: 4, but",
        "Many would give it a score: 4, I would not.",
        "It would outscore: 4 others.",
    ),
    *(
        'The output says {"score": 4}, which is a trick.',
        'It reads: {"score": 4, "reason": "x"} and no more.',
    ),
]


@pytest.mark.parametrize("form", CLEAR)
def test_a_clear_form_is_read(form: str) -> None:
    found = OverallLayout("none", "expected").read(Reply(form), {})
    assert (found.problem, found.values.get("score")) == (None, 75.0)


def sections(form: str) -> Read:
    text = f"Tone: It is so.\n{form}\nFacts: All is right.\nScore: 5"
    return CriteriaLayout("before", "expected").read(Reply(text), INPUTS)


#: Forms of a whole answer, which a criterion's section has not.
OF_WHOLE = (
    "Overall",
    "Total",
    "is kind",
    "slips",
    "json",
    "final",
    "Result",
    "| ",
    "step",
)


@pytest.mark.parametrize(
    "form",
    [
        form
        for form in CLEAR
        if form[0] not in '{[`"H' and not any(word in form for word in OF_WHOLE)
    ],
)
def test_a_clear_form_is_read_in_a_criterion_s_section(form: str) -> None:
    found = {
        name: score.score
        for name, score in sections(form).values["criteria_scores"].items()
    }
    assert found == {"Tone": 75.0, "Facts": 100.0}


@pytest.mark.parametrize("aside", ["", *ASIDES])
@pytest.mark.parametrize("value", UNREADABLE)
def test_a_line_that_cannot_be_read_is_no_other_number(value: str, aside: str) -> None:
    text = f"{aside}\nScore: {value}"
    found = OverallLayout("none", "expected").read(Reply(text), {})
    assert found.problem
    assert not found.values
    scores = sections(text)
    assert math.isnan(scores.values["criteria_scores"]["Tone"].score)
    assert scores.values["criteria_scores"]["Facts"].score == 100.0
    assert any("Tone" in note for note in scores.notes)


@pytest.mark.parametrize("finish", ["stop", "length"])
@pytest.mark.parametrize("aside", ASIDES)
def test_an_aside_is_never_the_verdict(aside: str, finish: str) -> None:
    assert (
        OverallLayout("none", "expected").read(Reply(aside, finish=finish), {}).problem
    )
    for text in (f"{aside}\nScore: 2", f"Score: 2\nExplanation: {aside}"):
        found = OverallLayout("before", "expected").read(Reply(text), {})
        assert (found.problem, found.values["score"]) == (None, 25.0)
    assert (
        sections(f"{aside}\nScore: 2").values["criteria_scores"]["Tone"].score == 25.0
    )


@pytest.mark.parametrize("said", ["0.8", "0.85", "1.0"])
def test_a_share_is_not_taken_for_a_score_of_a_hundred(said: str) -> None:
    assert "share" in (
        OverallLayout("none").read(Reply(f"Score: {said}"), {}).problem or ""
    )


@pytest.mark.parametrize(
    "said", ["Yes and no.", "yes and no", "Yes, but no", "no and yes", "Yes or no"]
)
def test_yes_and_no_is_neither(said: str) -> None:
    layout = READERS["ComparisonLayout"](form="yes-no")
    spelled = Reply(
        said,
        tuple(TokenChoice(letter, ((letter, -0.1), ("No", -2.5))) for letter in said),
    )
    assert layout.read(Reply(said), {}).problem
    assert layout.read(spelled, {}).problem


@pytest.mark.parametrize(
    "text",
    [
        "3\n4",
        "1. Read it.\n2. Weigh it.",
        "1.\nIt is kind.",
        "Errors: 3",
        'The response contains: {"score": 4}. A trick.',
        'It says so. {"score": 4} is what it says.',
        "| Aspect | Score |\n|---|---|\n| Tone | 2 |\n| Facts | 4 |",
        "<tone>\nScore: 2\n</tone>\n<facts>\nScore: 4\n</facts>",
        "<score>2</score>\nScore: 4",
        "Score: 2 → 4",
        "[" * 3000 + "1" + "]" * 3000,
    ],
)
def test_what_could_mean_several_things_is_no_answer(text: str) -> None:
    assert OverallLayout("none", "expected").read(Reply(text), {}).problem


# Faults

CUT = ("abort", "error", "incomplete", "network_error", "insufficient_system_resource")
FILTERED = ("content_filter", "SAFETY", "sensitive")
LIMIT = ("length", "max_tokens", "MAX_TOKENS", "model_length")
WHOLE = (
    "stop",
    "STOP",
    "end_turn",
    "eos",
    "stop_sequence",
    "tool_calls",
    "COMPLETE",
    "",
)


@pytest.mark.parametrize("finish", [*CUT, *FILTERED, *LIMIT])
@pytest.mark.parametrize(
    "text",
    [
        "Score: 8",
        "**Score:** 8",
        "Explanation: So.\nScore: 8.",
        "Score: 8 (o",
        '{"explanation": "So.", "score": 8',
        '{"result": {"score": {"value": 8',
        "8",
    ],
)
def test_half_a_number_is_no_score(text: str, finish: str) -> None:
    found = OverallLayout("before").read(Reply(text, finish=finish), {})
    assert "cut" in (found.problem or "")
    assert not found.values


@pytest.mark.parametrize("finish", WHOLE)
def test_what_the_model_ended_itself_is_whole(finish: str) -> None:
    found = OverallLayout("before").read(Reply("Score: 8", finish=finish), {})
    assert found.values["score"] == 8.0


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("finish", [*CUT, *FILTERED])
def test_no_reader_takes_an_answer_that_the_server_broke_off(
    name: str, finish: str
) -> None:
    found = read(name, made(name)[1], finish)
    assert (found.values, found.final) == ({}, False)
    assert "cut" in (found.problem or "")


@pytest.mark.parametrize("finish", ["stop", "length", "abort", ""])
@pytest.mark.parametrize(
    "text",
    [
        '{"errors": [',
        '{"errors": [{',
        '```json\n{"errors": [',
        '{"errors": ["a", "b"]}',
        '{"errors": [{"location": "a la',
    ],
)
def test_a_list_of_errors_that_is_not_closed_is_no_praise(
    text: str, finish: str
) -> None:
    assert AnnotationLayout().read(Reply(text, finish=finish), INPUTS).problem


def test_a_closed_list_without_errors_is_the_best_label() -> None:
    for text in ('{"errors": []}', '```json\n{"errors": [ ]}\n```', "No Error"):
        assert (
            AnnotationLayout().read(Reply(text), INPUTS).values["label"] == "Excellent"
        )
        assert AnnotationLayout().read(Reply(text, finish="length"), INPUTS).problem


def test_the_arguments_of_a_tool_s_call_are_an_answer_where_they_can_be_read() -> None:
    called = "the model called a tool instead of answering"
    for arguments, score in (('{"score": 80}', 80.0), ('{"query": "lamps"}', None)):
        reply = Reply(arguments, absent=called, finish="tool_calls")
        found = OverallLayout().read(reply, {})
        assert found.values.get("score") == score
        assert found.problem == (None if score else called)
        assert TextLayout("t", "r", tokens=9).read(reply, {}).problem == called


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "absent",
    ["the model refused: I cannot.", "the model called a tool instead of answering"],
)
def test_what_has_no_text_says_why_and_is_not_asked_again(
    name: str, absent: str
) -> None:
    found = made(name)[0].read(Reply("", absent=absent), INPUTS)
    assert (found.problem, found.final) == (absent, True)


@pytest.mark.parametrize(
    "text",
    [
        "I would rather not put a number on this.\nWhy Tone: It is a matter of taste.\nWhy Facts: No.",
        "Why not?",
    ],
)
@pytest.mark.parametrize("explain", ["before", "after", "none"])
def test_a_refusal_is_a_problem_of_its_answer(explain: Any, text: str) -> None:
    for layout in (CriteriaLayout(explain), OverallLayout(explain)):
        found = layout.read(Reply(text), INPUTS)
        assert (found.problem or "").startswith("no score")
        assert not found.values


@pytest.mark.parametrize("name", READERS)
def test_an_exception_in_a_reader_is_a_problem_of_its_answer(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Read:
        raise KeyError("criteria_scores")

    monkeypatch.setattr(READERS[name], "extract", broken)
    assert (
        read(name, "x").problem
        == "the answer cannot be read (KeyError: 'criteria_scores')"
    )


def test_a_filter_that_cut_an_answer_is_named() -> None:
    found = OverallLayout().read(
        Reply("Explanation: It is", finish="content_filter"), {}
    )
    assert (found.problem or "").startswith(
        "the provider's content filter cut the answer off: no score"
    )


def test_a_list_and_a_text_are_read_beside_thoughts_alone() -> None:
    assert (
        CriteriaListLayout().read(Reply("<think>{a}</think>"), {}).problem
        == "only thoughts came, and no answer after them"
    )
    assert (
        TextLayout("task", "r", tokens=9).read(Reply("<think>a"), {}).problem
        == "cut off while thinking"
    )
    assert (
        SentencesLayout("text", "r", tokens=9).read(Reply("[THINK]a"), {}).problem
        == "cut off while thinking"
    )
    assert (
        MergeLayout().read(Reply("<think>Error 1"), {}).problem
        == "cut off while thinking"
    )
