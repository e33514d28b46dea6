"""What direct scoring by comparisons costs: calls, prompt tokens, and how many of those a prefix cache has already.

    python experiments/bench/pairwise.py [--json] [--documents 3] [--outputs 4] [--levels 5] [--local NAME|none]

M outputs of one document cost N writings once and N·M comparisons; a second run costs nothing. Counted against an
OpenAI-style server in another process, which gives scripted answers with log-probabilities and cuts prompts into words;
its prefix cache is an ideal one: of each prompt, the longest beginning that any earlier prompt had counts as cached.
With a local model the tokens and the cache are llama.cpp's own.
"""

from __future__ import annotations

import os

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else DSPy's first pricing tries the network

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from judgesmith.errors import CallError, JudgesmithError
from judgesmith.experiments.bench.loopback import serve, serving
from judgesmith.programs.comparing.comparison import Order
from judgesmith.programs.comparing.pairwise import PairwiseDirectScorer
from judgesmith.programs.comparing.references import ReferenceStore
from judgesmith.programs.comparing.synthesis import ReferenceSet
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.signatures.values import Item, Usage

#: What the scripted model thinks of every pair.
ODDS = (("Better", -0.7), ("Worse", -1.2), ("Similar", -1.9), (" Better", -4.0), ("The", -5.0))
PLACES = ("bridge", "harbour", "market", "school", "library", "station", "museum")
EVENTS = ("was closed after the storm", "will be mended by spring", "was moved to the hill", "opens again on Monday")


def rows(documents: int, outputs: int) -> Iterator[dict[str, str]]:
    """`outputs` short summaries of each of `documents` news items of about 80 words."""
    for d in range(documents):
        place, event = PLACES[d % len(PLACES)], EVENTS[d % len(EVENTS)]
        source = (
            f"Item {d + 1}. The {place} of the town {event}. On Monday the council heard {d + 12} people who use the "
            f"{place} every week. A farmer asked who would pay, and an engineer named a sum that nobody had expected. "
            f"The mayor promised an answer within {d + 3} months; until then a bus takes the place of the usual way. "
            f"Shops nearby fear for their customers, while those who live in the street like the quiet."
        )
        for m in range(outputs):
            day = m % 4 + 1
            yield {
                "source": source,
                "output": f"The {place} {event}; on day {day} the council heard {m + d + 3} people.",
            }


# -- the scripted server


class IdealCache:
    """Tokens (words and marks) of all prompts so far as a tree: how long a beginning of a new one is in it."""

    def __init__(self) -> None:
        self.root: dict[str, Any] = {}

    def add(self, text: str) -> tuple[int, int]:
        """How many tokens a prompt has, and how many of them at its beginning an earlier one had."""
        node, shared, new = self.root, 0, False
        tokens = re.findall(r"\w+|[^\w\s]", text)
        for token in tokens:
            new = new or token not in node
            shared += not new
            node = node.setdefault(token, {})
        return len(tokens), shared


def scripted(last: str, number: int) -> tuple[str, bool]:
    """The answer to a prompt's last turn, and whether it is a comparison."""
    if "2 + 2 =" in last:
        return "4", False
    if "Aim at about" in last:
        return f"The council of the town heard {number} people on that day.", False
    return "Better", True


def application() -> web.Application:
    cache, count = IdealCache(), {"requests": 0}

    async def chat(request: web.Request) -> web.Response:
        body = orjson.loads(await request.read())
        count["requests"] += 1
        text, compares = scripted(body["messages"][-1]["content"], count["requests"])
        tokens, shared = cache.add(" ".join(f"{m['role']} {m['content']}" for m in body["messages"]))
        choice: dict[str, Any] = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
        }
        if body.get("logprobs"):
            odds = ODDS if compares else ((text, -0.1), ("x", -3.0))
            top = [{"token": t, "logprob": p} for t, p in odds]
            choice["logprobs"] = {"content": [{"token": text, "logprob": odds[0][1], "top_logprobs": top}]}
        usage = {
            "prompt_tokens": tokens, "completion_tokens": len(text.split()), "total_tokens": tokens,
            "prompt_tokens_details": {"cached_tokens": shared},
        }  # fmt: skip
        return web.Response(body=orjson.dumps({"choices": [choice], "usage": usage}), content_type="application/json")

    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/chat/completions", chat)
    return app


# -- what is counted


def counted(usage: Usage, count: int, seconds: float) -> dict[str, Any]:
    """What these rows cost, in all and per row. prefix_cached_share: of the prompt tokens, those not computed again;
    from_disk: calls that the call cache answered."""
    return {
        "calls": usage.calls,
        "from_disk": usage.cached,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "prefix_cached_share": round(usage.prefix_tokens / usage.prompt_tokens, 3) if usage.prompt_tokens else None,
        "calls_per_row": round(usage.calls / count, 2),
        "prompt_tokens_per_row": round(usage.prompt_tokens / count, 1),
        "seconds_per_row": round(seconds / count, 4),
    }


def measure(
    lm: LanguageModel, folder: Path, documents: int, outputs: int, levels: int, order: Order = "other-first"
) -> dict[str, Any]:
    """References written on their own, then the outputs compared, then everything once more with a new judge.

    Where the model can not write a document's references, beginnings of its source stand in for them, and that is
    counted.
    """
    count = documents * outputs

    def judge() -> PairwiseDirectScorer:
        store = ReferenceStore(folder / "references.sqlite")
        return PairwiseDirectScorer("summarization/coherence", levels=levels, order=order, references=store, lm=lm)

    def spent(work: Callable[[], None]) -> dict[str, Any]:
        before, started = lm.meter.usage, time.perf_counter()
        work()
        return counted(lm.meter.usage - before, count, time.perf_counter() - started)

    engine.run(lm.capabilities())
    found: dict[str, Any] = {"rows": count, "failed": 0, "levels_left_out": 0, "documents_unwritten": 0}

    def write() -> None:
        made = judge()
        for row in list(rows(documents, outputs))[::outputs]:
            try:
                references, _ = engine.run(made.areferences(Item.of(row), lm))
                found["levels_left_out"] += len(references.left_out)
            except CallError:  # a small model; stand-ins, so that there is something to compare with
                found["documents_unwritten"] += 1
                words = row["source"].split()
                texts = {n: " ".join(words[: len(words) * n // (levels + 1)]) + "." for n in range(1, levels + 1)}
                made.store.put(made.reference_key(Item.of(row), lm.name), ReferenceSet(levels, texts, {}))

    def score() -> None:
        made = judge()
        found["failed"] = sum(v.failure is not None for v in made.score_many(rows(documents, outputs), progress=False))
        found["hit_rate"] = round(made.store.hit_rate, 3)

    for name, work in (("writing", write), ("comparing", score), ("second_run", score)):
        found[name] = spent(work)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    parser.add_argument("--documents", type=int, default=3)
    parser.add_argument("--outputs", type=int, default=4, help="outputs of each document")
    parser.add_argument("--levels", type=int, default=5, help="references of each document, 2 to 9")
    parser.add_argument("--order", choices=["other-first", "output-first", "both"], default="other-first")
    parser.add_argument("--local", default="none", help="local/NAME to measure with, too")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(application()))
        return

    def say(line: str) -> None:
        print(line, file=sys.stderr if options.json else sys.stdout, flush=True)

    m, n, d = options.outputs, options.levels, options.documents
    orders = 2 if options.order == "both" else 1
    found: dict[str, Any] = {"documents": d, "outputs": m, "levels": n, "order": options.order}
    say(f"{d} documents, {m} outputs each, {n} levels, order {options.order}")
    say(f"to be expected: {d * n} writings once, {d * m * n * orders} comparisons, then none")

    def run(name: str, lm: LanguageModel, folder: Path) -> None:
        result = found[name] = measure(lm, folder, d, m, n, options.order)
        say(f"{lm.name}: {result['rows']} rows, {result['failed']} of them without a score")
        if result["documents_unwritten"]:
            say(
                f"  it could not write for {result['documents_unwritten']} documents: beginnings of the source stand in"
            )
        for what in ("writing", "comparing", "second_run"):
            c = result[what]
            share = (
                "" if c["prefix_cached_share"] is None else f", {c['prefix_cached_share']:.1%} from the prefix cache"
            )
            say(
                f"  {what.replace('_', ' '):11}{c['calls']:5} calls ({c['calls_per_row']:g} a row), "
                f"{c['prompt_tokens']:,} prompt tokens ({c['prompt_tokens_per_row']:g} a row{share}), "
                f"{c['seconds_per_row']:.3f} s a row"
            )

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["JUDGESMITH_CACHE"] = str(folder / "calls.sqlite")  # nothing is known from earlier runs
        with serving(__file__, "--serve") as base:
            connection = Connection(api_base=base, api_key="none", concurrency=1)  # in order, as a cache sees them best
            lm = language_model("openai/loopback", connection=connection)
            run("scripted", lm, folder)
        if options.local != "none":
            try:
                local = language_model(options.local)
                run("local", local, folder)
                found["local"]["model"] = options.local
            except JudgesmithError as error:
                found["local_skipped"] = str(error)
                say(f"skipped: {error}")
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
