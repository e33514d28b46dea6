"""A model that answers by a function of the request and records it, and rows that it recognises in any prompt."""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from judgesmith.datasets.records import Labels
from judgesmith.datasets.row import Row
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.transport import Request, Unanswered
from judgesmith.programs.prompting.predict import AGAIN
from judgesmith.signatures.judging import ExplainScore, ScoreCriteria, ScoreOverall
from judgesmith.signatures.task import (
    DescribeTask,
    MergeCriteria,
    MergeDescriptions,
    ObserveBatch,
    ProposeCriteria,
)
from judgesmith.testing.scripted import MakeScripted

#: Every row's texts hold its own mark, so that it can be found again in any prompt.
MARK = re.compile(r"\br\d{3}\b")
SCORE = re.compile(r"Score: (\d+)")
#: How a prompt of each step begins, whatever its wording.
STEPS = {
    " ".join(signature.instructions.split())[:60]: step
    for signature, step in (
        (ObserveBatch, "observe"),
        (DescribeTask, "describe"),
        (ProposeCriteria, "propose"),
        (MergeDescriptions, "merge"),
        (MergeCriteria, "join"),
        (ScoreOverall, "score"),
        (ScoreCriteria, "criteria"),
        (ExplainScore, "explain"),
    )
}


@dataclass(frozen=True)
class Ask:
    """One request as the model saw it."""

    body: dict[str, Any]
    number: int

    @property
    def key(self) -> str:
        """The request as text, for comparison."""
        return json.dumps(self.body, sort_keys=True)

    @property
    def system(self) -> str:
        """The system message."""
        return str(self.body["messages"][0]["content"])

    @property
    def last(self) -> str:
        """The last message."""
        return str(self.body["messages"][-1]["content"])

    @property
    def text(self) -> str:
        """All messages in one text."""
        return "\n".join(m["content"] for m in self.body["messages"])

    @property
    def step(self) -> str:
        """Step of a judge that the request belongs to.

        probe, observe, describe, propose, merge (descriptions), join (criteria), score, criteria, explain, or dspy (one
        of DSPy's own prompts, in which instructions are written). Instructions may have been rewritten for a score.
        """
        if "2 + 2 =" in self.last:
            return "probe"
        if "[[ ## " in self.text:
            return "dspy"
        rewritten = ["score"] if "<output>\n" in self.text else []
        return next(
            iter(
                [
                    *(step for start, step in STEPS.items() if start in self.text),
                    *rewritten,
                ]
            )
        )

    @property
    def again(self) -> bool:
        """True if an unreadable answer is requested a second time."""
        return AGAIN in self.last

    @property
    def judged(self) -> str:
        """The output to be judged."""
        turns = [m["content"] for m in self.body["messages"] if m["role"] == "user"]
        material = turns[-2] if self.again else turns[-1]
        return str(material.split("<output>\n", 1)[1].rsplit("\n</output>", 1)[0])

    @property
    def mark(self) -> str:
        """The judged row's mark; "" where a perturbation took it away."""
        match = MARK.search(self.judged)
        return match[0] if match else ""

    @property
    def shown(self) -> list[str]:
        """The marks of all rows that the prompt shows beside the judged one."""
        rest = self.system + "".join(
            m["content"] for m in self.body["messages"][1:-1] if not self.again
        )
        return MARK.findall(rest)

    @property
    def labels(self) -> list[float]:
        """The scores that stand in the prompt's demonstrations, in their order."""
        shown = self.system + "\n".join(
            m["content"] for m in self.body["messages"][1:-1]
        )
        return [float(n) for n in SCORE.findall(shown)]


@dataclass(frozen=True)
class Fault:
    """Something else than an answer: status (None: 200), headers, text, `cut` (fewer bytes than announced)."""

    status: int = 200
    text: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False


Answer = str | Fault | Awaitable[str | Fault]
NAMES = ("Accuracy", "Fluency", "Coverage", "Brevity")
CRITERIA = json.dumps(
    {
        "criteria": [
            {"name": name, "definition": f"How much {name.lower()} the output has."}
            for name in NAMES
        ]
    }
)


def written(ask: Ask, text: str) -> str:
    """Return an answer to one of DSPy's own prompts, in its form: `text` in the field that is asked for."""
    if "[[ ## module_advice ## ]]" in ask.text:
        advice = json.dumps({"judge.overall_scorer.predict": text})
        return f"[[ ## discussion ## ]]\nOne is better.\n\n[[ ## module_advice ## ]]\n{advice}\n\n[[ ## completed ## ]]"
    (*_, field) = (
        name
        for name in re.findall(r"\[\[ ## (\w+) ## \]\]", ask.system)
        if name != "completed"
    )
    return f"[[ ## {field} ## ]]\n{text}\n\n[[ ## completed ## ]]"


def sensible(ask: Ask) -> str:
    """Return an obedient model's answer to everything but the scoring itself."""
    if ask.step == "dspy":
        return written(
            ask, f"Weigh what the output says, by rule {sum(map(ord, ask.text)) % 97}."
        )
    return {
        "probe": "4",
        "observe": "People reward texts that are true to their source.",
        "describe": "Short texts are judged by how true they are to a source.",
        "propose": CRITERIA,
        "merge": "Short texts are judged by their truth.",
        "join": CRITERIA,
        "explain": "It is plain and short.",
    }[ask.step]


def judging(number: Callable[[Ask], int | float]) -> Callable[[Ask], Answer]:
    """Return a model that gives `number(ask)` in [0, 100] with an explanation, and answers sensibly to the rest."""

    def answer(ask: Ask) -> Answer:
        if ask.step == "score":
            return f"Explanation: It says {ask.mark}.\nScore: {round(number(ask))}"
        if ask.step == "criteria":
            return "\n".join(
                f"{name}: It says so. Score: {round(number(ask))}" for name in NAMES
            )
        return sensible(ask)

    return answer


class Asked:
    """Base of fake models: `answer` decides, `asks` are all requests in order."""

    def __init__(self) -> None:
        self.answer: Callable[[Ask], Answer] = judging(
            lambda ask: len(ask.judged) % 101
        )
        self.asks: list[Ask] = []

    @property
    def judged(self) -> list[Ask]:
        """The requests that score a row."""
        return [a for a in self.asks if a.step in ("score", "criteria")]


class FakeModel(Asked):
    """Models inside the process, without HTTP. Their probes are no asks."""

    def __init__(self) -> None:
        super().__init__()
        self.lm = self.model()

    def model(self, name: str = "openai/fake") -> LanguageModel:
        """Return a language model that this fake answers for."""

        def reply(request: Request) -> str | Unanswered:
            body = {"model": name.rpartition("/")[2], "messages": [*request.messages]}
            ask = Ask(body | {"temperature": request.temperature}, len(self.asks))
            self.asks.append(ask)
            answer = self.answer(ask)
            if isinstance(answer, Fault):
                return Unanswered(f"HTTP {answer.status}: {answer.text}", again=False)
            assert isinstance(answer, str)
            return answer

        return MakeScripted()(reply, name=name)[0]


#: Names of the environment that would choose another model or server.
FOREIGN = (
    "JUDGESMITH_LM",
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "OPENAI_API_KEY",
    "JUDGESMITH_DEBUG",
)


def own_environment(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Return a cache of calls in this folder, and no model or server from the environment; the cache's path."""
    path = folder / "calls.sqlite"
    monkeypatch.setenv("JUDGESMITH_CACHE", str(path))
    for name in FOREIGN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(
        "OLLAMA_HOST", "http://127.0.0.1:9"
    )  # nothing listens on the discard port
    return path


def make_rows(
    documents: int, per_document: int, score: Callable[[int], float]
) -> list[Row]:
    """Return rows whose source has its document's mark d…, and whose output has its own mark r….

    The lengths of texts differ, and no output nearly equals one of another document.
    """
    rows: list[Row] = []
    for n in range(documents * per_document):
        document = f"d{n // per_document:03d}"
        system = f"s{n % per_document}"
        source = f"Notice {document}: the hall is closed."
        output = f"Summary r{n:03d} of the notice" + f" ag{n:03d}" * (n % 7) + "."
        scores = {"overall": score(n)}
        rows.append(
            Row(
                id=f"r{n:03d}",
                source=source,
                output=output,
                system=system,
                doc_id=document,
                group=document,
                scores=scores,
                line=n + 1,
            )
        )
    return rows


def make_labels(
    documents: int, per_document: int, score: Callable[[int], float]
) -> Labels:
    """Return labelled rows: scores by row number, on 0..100."""
    return Labels(
        tuple(make_rows(documents, per_document, score)),
        "overall",
        (0.0, 100.0),
        origin="labels.jsonl",
    )
