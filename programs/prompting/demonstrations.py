"""Demonstrations as DSPy's optimizers bring them, in the form that prompts show and files hold.

An optimizer gives a predictor rows of the training set as they are, and steps of traces: inputs and outputs of one
call. What of these a prompt can show depends on the form of its answers, so that layouts have the last word (`held`,
`labelled`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judgesmith.errors import OptionError
from judgesmith.programs.prompting.layouts import Layout
from judgesmith.programs.prompting.saved import SavedDemo, other_texts
from judgesmith.rows import human_score
from judgesmith.signatures.values import Item, Scale


def traced(
    step: Mapping[str, Any], layout: Layout, signature: Any
) -> dict[str, Any] | None:
    """Return a step of a trace, inputs and outputs, as a demonstration; None for an answer that cannot be shown."""
    demo = {
        name: step[name]
        for name in SavedDemo.model_fields
        if step.get(name) is not None
    }
    demo |= other_texts(step, signature)
    demo |= layout.held(step)
    score = demo.get("score")
    if not layout.rates or (demo.get("comparison") and demo.get("other")):
        usable = layout.shows(demo)
    else:
        usable = (
            isinstance(score, int | float)
            and 0 <= score <= 100
            and bool(demo.get("output"))
        )
    return {**demo, "augmented": True, "gold": False} if usable else None


def labelled(
    row: Any, layout: Layout, signature: Any, scale: Scale | None
) -> dict[str, Any] | None:
    """Return a labelled row as a demonstration; None if it has nothing that the predictor could be shown.

    Args:
        row: The row.
        layout: The predictor's layout.
        signature: Its signature.
        scale: The scale of human scores; None if nobody stated it: then only a field `score` in percent is read.

    Raises:
        OptionError: For another score, since a rating of 4 would pass for 4 percent.
    """
    demo = {
        name: row[name]
        for name in SavedDemo.model_fields
        if isinstance(row.get(name), str)
    }
    demo |= other_texts(row, signature) | layout.labelled(row)
    gold = {"augmented": False, "gold": True}
    if not layout.rates or (demo.get("comparison") and demo.get("other")):
        return demo | gold if layout.shows(demo) else None
    item = Item.of(row)
    human = human_score(row)
    percent = human if scale is None else scale.to_percent(human)
    if not 0 <= percent <= 100 or (scale is None and row.get("score") is None):
        now = "" if scale is None else f"; it is {scale} now"
        raise OptionError(
            f"human score {human:g} of a row: on which scale is it? Set it on the evaluator, evaluator.scale = "
            f"js.Scale(lowest, highest){now}"
        )
    texts = {
        name: getattr(item, name)
        for name in ("source", "output", "context", "reference", "group")
    }
    scores = row.get("criteria_scores")
    if isinstance(scores, Mapping):
        demo |= {"criteria_scores": dict(scores)}
    return {**demo, **texts, "score": percent, **gold}
