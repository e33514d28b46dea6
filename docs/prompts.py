"""Writes the prompts that the pages of methods show, as the judges would send them.

python docs/prompts.py
"""

import re
from collections.abc import Callable
from pathlib import Path

import judgesmith as js
from judgesmith.programs.judge import Judge

METHODS = Path(__file__).resolve().parent / "pages/methods"
ROW = js.Item(
    source="The bridge over the Tarn is closed until May.", output="The bridge is open."
)
#: Name on the page -> the judge, and how the name of the predictor begins whose prompt is shown.
SHOWN: dict[str, tuple[Callable[[], Judge], str]] = {
    "active-critic": (lambda: critic("coarse"), "overall_scorer"),
    "active-critic-fine": (lambda: critic("fine"), "criteria_scorer"),
    "openlgauge": (
        lambda: js.Judge(js.OpeNLGauge("summarization/coherence")),
        "annotator",
    ),
    "pairwise": (
        lambda: js.Judge(js.PairwiseDirectScorer("summarization/coherence")),
        "comparer",
    ),
    "pairwise-writer": (
        lambda: js.Judge(js.PairwiseDirectScorer("summarization/coherence")),
        "writer",
    ),
    "direct": (lambda: js.Judge(js.DirectScorer("summarization/coherence")), "scorer"),
    "g-eval": (lambda: js.Judge(js.GEval("summarization/coherence")), "scorer"),
    "panel-words": (
        lambda: js.Judge(js.Panel("summarization/coherence", forms=["words"])),
        "words",
    ),
    "panel-questions": (
        lambda: js.Judge(js.Panel("summarization/coherence", forms=["questions"])),
        "questions",
    ),
    "readings": (
        lambda: js.Judge(js.ModelReadings("summarization/coherence")),
        "scorer",
    ),
}
BLOCK = re.compile(r"(<!-- prompt: ([\w-]+) -->\n```text\n).*?(```)", re.DOTALL)


def critic(variant: str) -> Judge:
    """Return Active-Critic in a variant, with a task and a criterion."""
    criteria = [js.Criterion("Accuracy", "Whether the summary is true to its source.")]
    method = js.ActiveCritic(
        variant,
        task="Summaries of news.",
        criteria=criteria,
        explain="before",
        reading="said",
    )
    return js.Judge(method)


def prompt(name: str) -> str:
    """Return the prompt of an example by name."""
    make, predictor = SHOWN[name]
    messages = next(
        text for key, text in make().previews(ROW).items() if key.startswith(predictor)
    )
    return "\n\n".join(
        f"[{message['role']}]\n{message['content']}" for message in messages
    )


def with_prompts(text: str) -> str:
    """Return a page with the prompts in their blocks."""
    return BLOCK.sub(lambda found: f"{found[1]}{prompt(found[2])}\n{found[3]}", text)


if __name__ == "__main__":
    for page in sorted(METHODS.glob("*.md")):
        page.write_text(
            with_prompts(page.read_text(encoding="utf-8")), encoding="utf-8"
        )
