"""What prompts show of a row is what its aspect needs, and what a user states wins."""

from typing import Any

import pytest

import judgesmith as js
from judgesmith.programs.aspects import GENERAL, Aspect, aspects
from judgesmith.programs.registry import methods
from judgesmith.signatures.values import Criterion, Item

ITEM = Item("The words.", "The source.", "The context.")
MAKERS = [js.OpeNLGauge, js.DirectScorer, js.GEval, js.Panel, js.PairwiseDirectScorer]
ALL = [aspect for task in aspects().tasks.values() for aspect in task.aspects.values()]


def shown(method: Any, item: Item = ITEM) -> tuple[bool, bool]:
    """Whether the first prompt that judges shows source and context."""
    text = str(next(iter(method.prompts(item).values())))
    return "The source." in text, "The context." in text


@pytest.mark.parametrize("aspect", ALL, ids=lambda one: f"{one.task}/{one.name}")
def test_every_aspect_is_judged_beside_what_it_needs(aspect: Any) -> None:
    source = aspect.needs_source
    assert shown(js.OpeNLGauge(aspect)) == (source, source or aspect.needs_context)


@pytest.mark.parametrize("make", MAKERS)
def test_every_method_of_one_aspect_honours_it(make: Any) -> None:
    assert shown(make("summarization/fluency")) == (False, False)
    assert shown(make("dialogue/groundedness")) == (False, True)
    assert shown(make("summarization/consistency")) == (True, True)
    # What a user states wins, and an aspect of one's own hides nothing.
    assert shown(make("summarization/fluency", material="all")) == (True, True)
    assert shown(make("summarization/consistency", material="output")) == (False, False)
    own = make("fluency", criteria=[Criterion("fluency", "It reads well.")])
    assert shown(own) == (True, True)


def test_the_writer_of_references_sees_the_source() -> None:
    method = js.PairwiseDirectScorer("summarization/fluency")
    comparing, writing = map(str, method.prompts(ITEM).values())
    assert "The source." not in comparing
    assert "The source." in writing


def test_demonstrations_hide_it_too_and_still_leave_out_their_own_row() -> None:
    method = js.DirectScorer("summarization/fluency")
    demo = {"source": "Another source.", "output": "Other words.", "score": 75.0}
    method.scorer.predict.demos = [
        demo,
        demo | {"source": ITEM.source, "output": ITEM.output},
    ]
    messages = method.prompts(ITEM)["scorer"]
    assert len(messages) == 4
    assert "Another source." not in str(messages)
    assert "Other words." in str(messages)


def test_a_judge_that_was_saved_before_shows_everything() -> None:
    for kind in methods.parts().values():
        if "material" in kind.Options.model_fields:
            assert kind.Options.absent()["material"] == "all"


def test_an_aspects_rules_and_steps_stand_in_the_prompt_and_the_users_win() -> None:
    with_rules = [aspect for aspect in ALL if aspect.rules]
    assert with_rules
    for aspect in with_rules:
        system = js.OpeNLGauge(aspect).prompts(ITEM)["annotator"][0]["content"]
        assert all(f"\n- {rule}" in system for rule in aspect.rules)
    own = js.OpeNLGauge(
        with_rules[0],
        own_rules="Only the first line counts.",
        own_steps="Read.\nThink.",
    )
    system = own.prompts(ITEM)["annotator"][0]["content"]
    assert "\n- Only the first line counts." in system
    assert with_rules[0].rules[0] not in system
    assert "Steps:\n1. Read.\n2. Think.\n\n" in system
    # Without rules (the paper's ablation 4) there are none of the aspect's either.
    bare = js.OpeNLGauge(with_rules[0], rules=False).prompts(ITEM)["annotator"][0]
    assert with_rules[0].rules[0] not in bare["content"]
    stated = Aspect(**{**ALL[0].model_dump(), "steps": ("Look twice.",)})
    assert "1. Look twice." in str(js.OpeNLGauge(stated).prompts(ITEM))


@pytest.mark.parametrize("field", list(type(ALL[0]).model_fields))
def test_every_field_of_an_aspect_changes_what_a_judge_or_a_listing_says(
    field: str,
) -> None:
    """A declaration that nothing reads would leave all of these as they are."""
    plain = ALL[0]
    others: dict[str, Any] = {
        "needs_source": False,
        "needs_context": True,
        "negative": True,
        "task": "summarization",
    }
    text = "Another word."
    kind = type(plain).model_fields[field].annotation
    value = others.get(field, (text,) if "tuple" in str(kind) else text)
    given = {"needs_source": False} if field == "needs_context" else {}
    before = type(plain)(**{**plain.model_dump(), **given})
    after = type(plain)(**{**plain.model_dump(), **given, field: value})

    def told(aspect: Any) -> Any:
        method = js.OpeNLGauge(aspect)
        return (
            method.prompts(ITEM),
            method.saved_options(),
            aspect.scoring,
            aspect.aliases,
        )

    assert told(before) != told(after)


@pytest.mark.parametrize(
    ("aspect", "task", "learnt"),
    [
        (f"{GENERAL}/overall", "", True),
        (f"{GENERAL}/fluency", "", True),
        ("summarization/coherence", "", False),
        (f"{GENERAL}/overall", "Minutes of meetings are judged.", False),
    ],
)
def test_a_panel_learns_the_task_where_nothing_describes_it(
    aspect: str, task: str, learnt: bool
) -> None:
    panel = js.Panel(aspect, infer=True, task=task)
    before = panel.knowledge.description
    inquiry = panel.inquiry()
    assert inquiry is not None
    assert inquiry.described == learnt
    inferred = type(
        "Inferred", (), {"description": "Notices are judged.", "criteria": ()}
    )
    panel.learn(inferred(), None)
    assert panel.knowledge.description == ("Notices are judged." if learnt else before)
