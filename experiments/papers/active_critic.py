"""Active-Critic against its baselines on one benchmark set: zero-shot, random demonstrations, compiled, plain DSPy.

    JUDGESMITH_DATA=… python -m judgesmith.experiments.papers.active_critic wiki_da meaning local/qwen2.5-0.5b \
        --seeds 3 --train 40 --heldout 60 -o results.jsonl

Every arm judges the same held-out rows; no arm sees their labels. One JSON line an arm and seed is appended as soon
as it is there, and a second run leaves out what the file already has.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import numpy as np

from ...datasets.loading import read_labels
from ...datasets.records import Labels
from ...optimizers.agreement.objectives import Q
from ...optimizers.compiling import Compiler
from ...optimizers.examples import Agreement, agreement, examples_of, item_of, score_rows
from ...optimizers.search.base import brief
from ...optimizers.search.random import CorrelationRandomSearch
from ...programs.active_critic.critic import ActiveCritic, Variant
from ...programs.active_critic.task import TaskInference
from ...programs.judge import Judge
from ...programs.models.lm import LanguageModel, language_model
from ...programs.progress import Silent
from ..peers.peer_dspy import plain_search


class Log:
    """Progress as plain lines."""

    def __init__(self) -> None:
        self.started = time.monotonic()

    def stage(self, title: str, steps: int) -> None:
        print(f"  {time.monotonic() - self.started:6.0f} s  {title} ({steps})", file=sys.stderr, flush=True)

    def step(self, title: str | None = None) -> None: ...

    def best(self, text: str) -> None:
        print(f"           best {text}", file=sys.stderr, flush=True)


def draw(labels: Labels, train: int, heldout: int, seed: int) -> tuple[Labels, Labels]:
    """Whole groups in random order: the first `train` rows, then `heldout` rows of other groups."""
    groups: dict[str, list[int]] = {}
    for index, row in enumerate(labels.rows):
        groups.setdefault(row.group, []).append(index)
    names = list(groups)
    np.random.default_rng(seed).shuffle(names)
    sides: tuple[list[int], list[int]] = ([], [])
    for name in names:
        for side, size in zip(sides, (train, heldout), strict=True):
            if len(side) + len(groups[name]) <= size:
                side += groups[name]
                break
    return labels.subset(sides[0]), labels.subset(sides[1])


def random_demos(judge: Judge, train: Labels, count: int, seed: int) -> Judge:
    """The same prompt with `count` random labelled demonstrations, no search."""
    examples = examples_of(train)
    made = judge.copy_for()
    for index in np.random.default_rng([seed, 8]).permutation(len(examples))[:count]:
        row = examples[int(index)]
        for predictor in made.predictors():
            predictor.demos.append({**made.demonstration(item_of(row), None), "score": row.score})
    return made


def plain_dspy(train: Labels, heldout: Labels, lm: LanguageModel, seed: int) -> tuple[dict[str, Any], Agreement]:
    """DSPy's own BootstrapFewShotWithRandomSearch with a closeness metric, validated on its training rows."""
    transport: Any = lm._transport
    plain = dspy.LM(
        f"openai/{transport.model}",
        api_base=transport.url.removesuffix("/chat/completions"),
        api_key=transport._headers.get("Authorization", "Bearer none").removeprefix("Bearer "),
        temperature=0.0,
        max_tokens=200,
        cache=False,
    )
    examples = [
        dspy.Example(source=e.source, output=e.output, score=round(e.score, 1)).with_inputs("source", "output")
        for e in examples_of(train)
    ]
    examples = [examples[int(i)] for i in np.random.default_rng(seed).permutation(len(examples))]
    with dspy.context(lm=plain, max_errors=10_000), contextlib.redirect_stdout(io.StringIO()):
        program = plain_search(examples, train.aspect, candidates=4)
        scores = []
        held = examples_of(heldout)
        for e in held:
            try:
                scores.append(min(100.0, max(0.0, float(program(source=e.source, output=e.output).score))))
            except Exception:
                scores.append(math.nan)
    tried = [c["score"] for c in program.candidate_programs]
    zero = next(c["score"] for c in program.candidate_programs if c["seed"] == -3)
    calls = len(plain.history)
    tokens = sum((h["usage"] or {}).get("total_tokens", 0) for h in plain.history)
    found = agreement(np.array(scores), held, objective=Q(), seed=seed)
    return {"train_closeness": max(tried), "train_closeness_zero_shot": zero, "calls": calls, "tokens": tokens}, found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set")
    parser.add_argument("aspect")
    parser.add_argument("model")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--train", type=int, default=40)
    parser.add_argument("--heldout", type=int, default=60)
    parser.add_argument("--candidates", type=int, default=6)
    parser.add_argument("--demos", type=int, default=8)
    parser.add_argument("--keep", type=int, default=2, help="task descriptions kept (the paper keeps 5)")
    parser.add_argument("--arms", default="coarse,fine,dspy")
    parser.add_argument("--compiled-only", action="store_true", help="held-out rows by the compiled judge only")
    parser.add_argument("--explain", default="auto")
    parser.add_argument("--reading", default="auto")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    folder = Path(os.environ["JUDGESMITH_DATA"])
    labels = read_labels(folder / f"{options.set}.jsonl", aspect=options.aspect)
    lm = language_model(options.model)
    done = set()
    if options.output.exists():
        for line in options.output.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            done.add((row["set"], row["aspect"], row["model"], row["seed"], row["arm"]))

    for seed in range(options.seeds):
        train, heldout = draw(labels, options.train, options.heldout, seed)
        print(f"seed {seed}: {len(train)} training, {len(heldout)} held-out rows", file=sys.stderr, flush=True)

        def report(
            arm: str,
            found: Agreement,
            started: float,
            seed: int = seed,
            sizes: tuple[int, int] = (len(train), len(heldout)),
            **more: Any,
        ) -> None:
            row = {
                "set": options.set, "aspect": options.aspect, "model": options.model, "seed": seed, "arm": arm,
                "train": sizes[0], "heldout": sizes[1], **found.to_dict(),
                "seconds": round(time.monotonic() - started, 1), **more,
            }  # fmt: skip
            with options.output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{arm:24} {found}  {row['seconds']} s", flush=True)

        def skip(arm: str, seed: int = seed) -> bool:
            return (options.set, options.aspect, options.model, seed, arm) in done

        def held_out(judge: Judge, heldout: Labels = heldout, seed: int = seed) -> Agreement:
            examples = examples_of(heldout)
            return agreement(score_rows(brief(judge), examples, Silent()).percents, examples, objective=Q(), seed=seed)

        variants: list[Variant] = [v for v in ("vanilla", "coarse", "fine") if v in options.arms.split(",")]
        for variant in variants:
            if skip(f"compiled {variant}"):
                continue
            run_variant(variant, options, train, lm, seed, held_out, report)
        if "dspy" in options.arms.split(",") and not skip("plain DSPy"):
            started = time.monotonic()
            more, found = plain_dspy(train, heldout, lm, seed)
            report("plain DSPy", found, started, **more)


def run_variant(
    variant: Variant,
    options: argparse.Namespace,
    train: Labels,
    lm: LanguageModel,
    seed: int,
    held_out: Callable[[Judge], Agreement],
    report: Callable[..., None],
) -> None:
    started, before = time.monotonic(), lm.meter.usage
    compiler = Compiler(
        search=CorrelationRandomSearch(candidates=options.candidates, max_demos=options.demos, seed=seed),
        inference=TaskInference(keep=options.keep),
        seed=seed,
        progress=Log(),
    )
    judge = ActiveCritic(variant, explain=options.explain, reading=options.reading)
    fitted = compiler.fit(judge, train, lm)
    spent = lm.meter.usage - before
    searched = {
        "calls": spent.calls, "cached": spent.cached, "tokens": spent.tokens, "prefix_tokens": spent.prefix_tokens,
        "selected": fitted.record.selected.to_dict(), "explain": fitted.judge.options()["explain"],
        "reading": fitted.judge.options()["reading"],
        "forms": [{**f.form.values, "q": f.agreement.q} for f in fitted.forms],
        "candidates": [[c.name, c.kind, c.demos, round(c.agreement.q, 3)] for c in fitted.record.candidates],
        "task": fitted.judge.knowledge.description,
        "criteria": [c.name for c in fitted.judge.knowledge.criteria],
    }  # fmt: skip
    search_seconds = time.monotonic() - started
    arms = {f"compiled {variant}": fitted.judge}
    if not options.compiled_only:
        arms = {
            f"zero-shot {variant}": fitted.zero_shot,
            f"8 random demos {variant}": random_demos(fitted.zero_shot, train, 8, seed),
        } | arms
    for arm, made in arms.items():
        arm_started = time.monotonic()
        found = held_out(made)
        if arm.startswith("compiled"):
            report(arm, found, arm_started, search_seconds=round(search_seconds, 1), search=searched)
        else:
            report(arm, found, arm_started)


if __name__ == "__main__":
    main()
