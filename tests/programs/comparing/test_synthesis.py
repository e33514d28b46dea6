"""The reference writer: order of writing, prompts, checks, rewrites, levels left out."""

from typing import Any

import pytest
from tables import table

from judgesmith.errors import CallError
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.aspects import aspects
from judgesmith.programs.comparing.synthesis import (
    FAMILIES,
    WRITINGS,
    ReferenceWriter,
    Target,
    WritingLayout,
    fault_of,
    length_guide,
    word_count,
    writing_order,
)
from judgesmith.programs.models import engine
from judgesmith.programs.models.transport import Request
from judgesmith.signatures.values import Item

ITEM = Item(
    "Judged.",
    "The mayor said that the bridge is to be closed for a week and that the ferry will run.",
    "Facts.",
)
TARGET = Target(
    "summarization",
    "Summaries.",
    "coherence",
    "hangs together",
    "it is a heap",
    "it flows",
    20,
    5,
)


def said(request: Request) -> str:
    return str(request.messages[-1]["content"])


def write(lm: Any, target: Target = TARGET, item: Item = ITEM) -> Any:
    return engine.run(ReferenceWriter().awrite(item, target, lm))


# Order


@pytest.mark.parametrize(
    ("levels", "order"),
    [
        (2, [1, 2]),
        (3, [1, 3, 2]),
        (4, [1, 4, 2, 3]),
        (5, [1, 5, 3, 2, 4]),
        (9, [1, 9, 5, 3, 7, 2, 4, 6, 8]),
    ],
)
def test_extremes_come_first_then_halves(levels: int, order: list[int]) -> None:
    assert writing_order(levels) == order


@pytest.mark.parametrize("levels", [2, 5, 9])
def test_each_level_is_one_call_and_sees_its_nearest_neighbours(
    scripted: Any, levels: int
) -> None:
    made = iter(writing_order(levels))
    lm, transport = scripted(lambda _: f"Text of level {next(made)}.")
    found, usage = write(lm, Target(levels=levels))
    assert found.outputs == {n: f"Text of level {n}." for n in range(1, levels + 1)}
    assert list(found.outputs) == sorted(found.outputs)
    assert (found.left_out, usage.calls) == ({}, levels)
    if levels == 5:
        for request, below, above in (
            (2, 1, 5),
            (3, 1, 3),
            (4, 3, 5),
        ):  # levels 3, 2 and 4
            text = said(transport.requests[request])
            assert f"Worse text:\n<output>\nText of level {below}.\n</output>" in text
            assert f"Better text:\n<output>\nText of level {above}.\n</output>" in text


# Prompts


def test_the_request_stands_last_and_all_before_it_is_shared(scripted: Any) -> None:
    lm, transport = scripted(lambda r: f"Words number {len(transport.requests)}.")
    write(lm)
    systems = {r.messages[0]["content"] for r in transport.requests}
    assert len(systems) == 1
    (system,) = systems
    for text in (
        "Summaries.",
        "coherence: hangs together",
        "Answer with the summary alone",
    ):
        assert text in system
    start = f"<source>\n{ITEM.source}\n</source>\n<context>\nFacts.\n</context>\n"
    assert all(said(r).startswith(start) for r in transport.requests)
    worst, best, middle = (said(r) for r in transport.requests[:3])
    assert "as bad as it can be, such that it is a heap" in worst
    assert "as good as it can be, such that it flows" in best
    assert "half-way between" in middle
    assert all("Aim at about 20 words." in said(r) for r in transport.requests)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_names_its_output(scripted: Any, family: str) -> None:
    assert family in aspects().tasks  # the names are the library's
    lm, transport = scripted(lambda r: f"Words number {len(transport.requests)}.")
    write(lm, Target(family, levels=2))
    assert f"Write a {FAMILIES[family].noun} whose quality" in said(
        transport.requests[0]
    )


def test_the_fingerprint_tells_instructions_apart_but_for_their_spaces() -> None:
    assert (
        Target().fingerprint("one")
        == Target(levels=3).fingerprint(" one\n")
        != Target().fingerprint("two")
    )


def test_length_comes_from_the_target_the_family_or_the_source() -> None:
    assert Target("story", words=33).length("s") == 33
    assert Target("story").length("s") == 150
    assert Target("simplification").length("one two three four five six") == 6
    assert (
        length_guide(["one two three four", "a b c d e f", "", "x y z p q"]) == 5
    )  # the median of 4, 6, 5
    assert length_guide([" "]) == 0
    assert word_count("今日は天気がいい") == 1 + 4  # one run of eight letters


# Checks


@pytest.mark.parametrize(
    ("text", "kept"),
    table(__file__, "synthesis_cases"),
)
def test_what_wraps_a_text_is_taken_off(text: str, kept: str) -> None:
    assert WritingLayout().read(Reply(text), {}).values == {"output": kept}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("...", "empty"),
        ("the FERRY runs", "same"),
        ("Here is the summary you asked for. It rains.", "announces"),
        ("A bridge. This is the worst possible summary.", "announces|speaks"),
        ("I cannot write this.", "speaks"),
        ("The text is: " * 9, "repeats"),
        ("大桥关闭一周，渡轮将照常运行。" * 5, "repeats"),
    ],
)
def test_faults(text: str, why: str) -> None:
    found = fault_of(text, ["The ferry runs.", "Another one."])
    assert found is not None
    assert any(w in found for w in why.split("|"))


# Rewrites


def test_a_refused_text_is_written_again_with_the_reason(scripted: Any) -> None:
    answers = ["Bad one.", "bad one", "Good one."]
    lm, transport = scripted(lambda _: answers.pop(0))
    found, usage = write(lm, Target(levels=2))
    assert found.outputs == {1: "Bad one.", 2: "Good one."}
    assert usage.calls == 3
    first, again = transport.requests[1:]
    assert (first.temperature, again.temperature, again.sample) == (0.0, 0.7, 1)
    assert said(again).startswith(said(first))
    assert (
        "refused, because it is the same as one that exists:\n<output>\nbad one\n</output>"
        in said(again)
    )


def test_a_level_that_cannot_be_written_is_left_out_and_the_others_go_on(
    scripted: Any,
) -> None:
    def answer(request: Request) -> str:
        text = said(request)
        if "as bad as" in text:
            return "Worst text."
        if "as good as it" in text:
            return "Best text."
        both = "\nWorst text.\n" in text and "\nBest text.\n" in text
        if both and "Middle" not in text and len(transport.requests) <= 2 + WRITINGS:
            return "Worst text."  # level 3 fails each time
        return f"Middle text {len(transport.requests)}."

    lm, transport = scripted(answer)
    found, usage = write(lm)
    assert list(found.outputs) == [1, 2, 4, 5]
    assert "the same as one that exists (written 3 times)" in found.left_out[3]
    assert usage.calls == 2 + WRITINGS + 2
    assert "\nBest text.\n" in said(
        transport.requests[5]
    )  # level 2 now lies between 1 and 5


def test_without_an_extreme_there_is_nothing(scripted: Any) -> None:
    lm, _ = scripted(lambda _: "...")
    with pytest.raises(
        CallError, match="could not write reference 1 of 5: it is empty"
    ) as caught:
        write(lm)
    assert caught.value.usage.calls == WRITINGS  # type: ignore[attr-defined]


def test_a_text_cut_off_ends_with_its_last_sentence(scripted: Any) -> None:
    cut = Reply("The bridge is closed. The ferry wi", finish="length")
    lm, _ = scripted(lambda r: cut if "as bad" in said(r) else "Other.")
    found, _ = write(lm, Target(levels=2))
    assert found.outputs[1] == "The bridge is closed."
