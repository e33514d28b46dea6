"""The library of aspects: what it holds, and how names are found."""

import re
import tomllib
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from judgesmith.errors import OptionError
from judgesmith.programs.aspects import aspects

#: The numbers of OpeNLGauge's table 2, and of its unseen task; groundedness, unseen too, is dialogue's tenth.
PAPER = {
    "summarization": 6,
    "data-to-text": 7,
    "dialogue": 9 + 1,
    "story": 6,
    "question-answering": 11,
    "simplification": 3,
}


def test_the_tasks_have_the_papers_numbers_of_aspects() -> None:
    library = aspects()
    own = {"question-answering": {"answer quality", "citation"}}  # of DHP, and ours
    assert {
        name: len(library.tasks[name].aspects.keys() - own.get(name, set()))
        for name in PAPER
    } == PAPER
    assert set(library.tasks) == {
        *PAPER,
        "general",
        "translation",
        "story completion",
        "agent",
    }


def test_no_aspect_is_written_twice() -> None:
    """YAML would take the second without a word."""
    text = (
        files("judgesmith.programs")
        .joinpath("aspects.yaml")
        .read_text(encoding="utf-8")
    )
    every = sum(len(task.aspects) for task in aspects().tasks.values())
    assert len(re.findall(r"^ {6}[a-z][a-z -]*:$", text, re.MULTILINE)) == every


def test_every_aspect_says_something_of_its_own() -> None:
    every = [
        aspect for task in aspects().tasks.values() for aspect in task.aspects.values()
    ]
    for aspect in every:
        assert aspect.low != aspect.high
        assert len(aspect.definition.split()) >= 6, aspect
    assert len({aspect.definition for aspect in every}) == len(every)
    # Form needs no source and content does; coherence in a dialogue is with the dialogue, not within the response.
    needs = {f"{a.task}/{a.name}": a.needs_source for a in every}
    assert needs["summarization/consistency"]
    assert needs["dialogue/coherence"]
    assert not needs["summarization/fluency"]
    assert not needs["summarization/coherence"]


def test_bad_things_are_marked_and_say_what_a_score_means_and_no_alias_is_of_two_aspects() -> (
    None
):
    bad = {
        a.name
        for t in aspects().tasks.values()
        for a in t.aspects.values()
        if a.negative
    }
    assert bad == {"hallucination", "redundancy"}
    assert "Reverse human scores" in aspects().find("hallucination").scoring
    assert "Reverse human scores" not in aspects().find("consistency").scoring
    for task in aspects().tasks.values():
        claimed = [
            alias
            for aspect in task.aspects.values()
            for alias in aspect.aliases
            if alias not in task.aspects
        ]
        assert len(claimed) == len(set(claimed)), task.name


def test_the_benchmarks_names_of_aspects_are_found() -> None:
    cards = tomllib.loads(
        files("judgesmith.datasets.benchmarks")
        .joinpath("cards.toml")
        .read_text(encoding="utf-8")
    )
    missing = []
    for key, card in cards.items():
        for name in card["aspects"]:
            if not name.endswith("errors_neg"):  # counts of errors, not aspects
                try:
                    aspects().find(name, card["task"])
                except OptionError:
                    missing.append((key, name))
    assert missing == []


@pytest.mark.parametrize(
    ("name", "task", "found"),
    [
        ("meaning", "simplification", "meaning preservation"),
        ("Meaning_Preservation", "text simplification", "meaning preservation"),
        ("informativeness", "summarization", "coverage"),
        ("understandable", "dialogue", "understandability"),
        ("accuracy", "data-to-text", "correctness"),
        ("consistency", "data-to-text", "faithfulness"),
        ("FLUENCY", "translation en-de", "fluency"),
        ("engagingness", "story", "engagement"),
        ("grammar", "QA", "grammaticality"),
        ("accuracy", "summarization", "accuracy"),
        ("interesting", "dialogue", "interestingness"),
    ],
)
def test_a_name_is_found_by_any_spelling_and_alias(
    name: str, task: str, found: str
) -> None:
    library = aspects()
    aspect = library.find(name, task)
    assert aspect.name == found
    assert aspect.task == library.task(task).name != "general"


def test_without_a_task_the_general_aspect_or_the_only_one_is_taken() -> None:
    assert aspects().find("fluency").task == "general"
    assert aspects().find("simplicity").task == "simplification"
    assert aspects().find("dialogue/fluency").task == "dialogue"
    assert aspects().find("overall", "story").task == "general"  # which the task lacks


@pytest.mark.parametrize(
    ("name", "task", "words"),
    [
        ("coherense", None, "did you mean 'coherence'"),
        ("fluency", "sumarization", "did you mean 'summarization'"),
        (
            "empathy",
            "summarization",
            "other tasks have it: dialogue/empathy, story/empathy",
        ),
        ("simplicty", "simplification", "did you mean 'simplicity'"),
        ("", None, "there is no aspect ''"),
        ("x/y/z", None, "there is no task 'x'"),
        ("empathy", None, "dialogue/empathy, story/empathy"),
    ],
)
def test_an_unknown_name_says_what_comes_close(
    name: str, task: str | None, words: str
) -> None:
    with pytest.raises(OptionError, match=words):
        aspects().find(name, task)


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=30))
def test_any_name_is_found_or_refused_in_words(name: str) -> None:
    try:
        assert aspects().find(name).definition
    except OptionError as error:
        assert "There are" in str(error) or "name one of" in str(error)


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_spelling_makes_no_difference(data: st.DataObject) -> None:
    library = aspects()
    task = data.draw(st.sampled_from(list(library.tasks)))
    name = data.draw(st.sampled_from(list(library.tasks[task].aspects)))
    blank = data.draw(st.sampled_from([" ", "_", "-", "  "]))
    spelled = data.draw(st.sampled_from([str.upper, str.title, str.lower]))(
        name.replace(" ", blank)
    )
    assert library.find(f" {spelled} ", task) == library.tasks[task].aspects[name]


def test_an_aspect_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        aspects().find("fluency").name = "other"
    with pytest.raises(TypeError):
        aspects().tasks["x"] = aspects().tasks["story"]  # type: ignore[index]
