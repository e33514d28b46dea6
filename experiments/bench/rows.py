"""What judging a row takes beside HTTP, by kind of judge.

    python experiments/bench/rows.py [--json] [--rows 400] [--repetitions 12] [--kinds overall criteria …] [--save]

A model in this process answers at once, so that only this package's own work is left: prompts, limits, reading of
answers, verdicts. cpu_ms: processor time a row, the least of the repetitions, which a busy machine disturbs least;
calls: of the model, a row. overall is the judge of `scoring.py`; criteria scores three of them in one call; openlgauge
has three annotators and a supervisor; pairwise compares with five references, which are written once, as all rows are
of one document.
"""

from __future__ import annotations

import os

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import argparse
import asyncio
import gc
import json
import re
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from judgesmith.experiments.bench.loopback import DIGITS, OTHERS
from judgesmith.experiments.bench.scoring import (
    CRITERIA,
    TASK,
    load,
    make_judge,
    rows,
    text,
)
from judgesmith.experiments.studies.saving import save
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.comparing.pairwise import PairwiseDirectScorer
from judgesmith.programs.comparing.references import ReferenceStore
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.connection import Capabilities
from judgesmith.programs.models.lm import Connection, LanguageModel
from judgesmith.programs.models.transport import Request, read_reply
from judgesmith.programs.openlgauge.judge import OpeNLGauge

DATA = Path(__file__).resolve().parents[1] / "results" / "data"
IN_FLIGHT = 64
ERROR = "Error 1\nLocation: the valley plan\nExplanation: It is not so.\nSeverity: 2"
#: What a prompt says, and the answer to it; the first that fits.
ANSWERS = {
    "make one list out of theirs": ERROR,
    "Location:": f"{ERROR}\n\nOverall: Good\nReason: One small error stands there.",
    "You compare two outputs": "Better",
    "on each criterion": "\n".join(f"{c.name}: Fine.\nScore: 4" for c in CRITERIA),
    "": "Explanation: Fine.\nScore: 4",
}


def place(token: str) -> dict[str, Any]:
    """Return a token with its log-probability and the likeliest ones at its place."""
    likely = DIGITS if token.strip() == "4" else OTHERS
    listed = [{"token": other, "logprob": logprob} for other, logprob in likely]
    return {"token": token, "logprob": -0.4, "top_logprobs": listed}


def completion(text: str) -> dict[str, Any]:
    """Return a chat completion with log-probabilities at each word of the text."""
    tokens = list(map(place, re.findall(r"\s?\w+|\W", text)))
    choice = {
        "message": {"content": text},
        "finish_reason": "stop",
        "logprobs": {"content": tokens},
    }
    usage = {"prompt_tokens": 700, "completion_tokens": len(tokens)}
    return {"choices": [choice], "usage": usage}


class AtOnce:
    """A transport that answers in the loop's next turn."""

    def __init__(self) -> None:
        self.calls = 0
        self._answers = {mark: completion(text) for mark, text in ANSWERS.items()}

    async def send(self, request: Request) -> Reply:
        """Return the answer to what is asked, and count the call."""
        self.calls += 1
        asked = request.messages[0]["content"]
        if "You write outputs" in asked:
            return read_reply(completion(text(977 * self.calls, 30)))
        mark = next(mark for mark in self._answers if mark in asked)
        await asyncio.sleep(0)
        return read_reply(self._answers[mark])


def model(name: str, transport: AtOnce) -> LanguageModel:
    """Return a model that answers at once."""
    connection = Connection(cache=False, concurrency=IN_FLIGHT)
    lm = LanguageModel(name, transport, identity="", connection=connection)
    lm.assume(Capabilities(logprobs=True, json_schema=True))
    return lm


def judge(kind: str, transport: AtOnce) -> Judge:
    """Return a judge of a kind."""
    lm = model("bench/model", transport)
    if kind == "overall":
        return make_judge(lm)
    if kind == "criteria":
        method = ActiveCritic(
            "fine",
            explain="before",
            reading="expected",
            task=TASK,
            criteria=CRITERIA,
            combine="mean",
        )
        return Judge(method, lm=lm)
    if kind == "pairwise":
        store = ReferenceStore(Path(tempfile.mkdtemp(), "references.sqlite"))
        return Judge(PairwiseDirectScorer("fluency", references=store), lm=lm)
    names = [f"bench/{letter}" for letter in "abc"]
    ensemble = OpeNLGauge("fluency", annotators=names, reading="said")
    for name in names:
        ensemble.use(name, model(name, transport))
    return Judge(ensemble, lm=lm)


def measure(kind: str, count: int, repetitions: int) -> dict[str, float]:
    """Return the least processor time of a row in milliseconds, and its calls."""
    transport = AtOnce()
    judged = judge(kind, transport)
    times = list[float]()
    texts = list(rows(count))
    if kind == "pairwise":
        texts = [row | {"source": texts[0]["source"]} for row in texts]
    for _ in range(repetitions + 1):
        gc.collect()
        transport.calls = 0
        started = time.process_time()
        verdicts = judged.score_many(texts, concurrency=IN_FLIGHT, progress=False)
        scored = sum(verdict.failure is None for verdict in verdicts)
        times.append(time.process_time() - started)
        assert scored == count, f"{kind}: {scored} of {count} rows have a score"
    return {
        "cpu_ms": round(1000 * min(times[1:]) / count, 3),
        "calls": transport.calls / count,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--repetitions", type=int, default=12)
    kinds = ["overall", "criteria", "openlgauge", "pairwise"]
    parser.add_argument("--kinds", nargs="*", choices=kinds, default=kinds)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    figures = {
        kind: measure(kind, options.rows, options.repetitions) for kind in options.kinds
    }
    save(
        DATA if options.save else None,
        "speed-rows",
        {"judge": "", "calls": "{:g}", "ms of processor": "{:.2f}"},
        [[kind, one["calls"], one["cpu_ms"]] for kind, one in figures.items()],
        commands=[shlex.join(["python", "experiments/bench/rows.py", *sys.argv[1:]])],
        notes=load(),
    )
    if options.json:
        print(json.dumps(figures))
        return
    for kind, figure in figures.items():
        print(f"{kind:12} {figure['cpu_ms']:.3f} ms a row, {figure['calls']:g} calls")


if __name__ == "__main__":
    main()
