"""Measure whether a search finds demonstrations that help, and none where they do not.

    python experiments/bench/taught.py [--seeds 10] [--effects none small large] [--bars .7 .85] [--output DIR]

A scripted model scores texts of a known quality and tone. Without demonstrations it weighs the two; with some it
regresses their scores on both, from where it stands. Effects differ in how much it learns: none (demonstrations change
only its noise), small, or large. Of 40 labels, the search's choice is compared with zero-shot, with every candidate,
and with what `compile` reports, on new rows with labels of the same kind. With `--bars`, each search's answers choose
by several values of `sure`, and nothing is compiled.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import judgesmith as js
from judgesmith.agreement.correlation import CorrelationSum
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.examples import examples_of
from judgesmith.optimizers.registry import build_optimizer
from judgesmith.programs.models.transport import Request
from judgesmith.testing.scripted import scripted_models

ROWS = 40
NEW = 150
LABEL_NOISE = 8.0
#: Each set has four demonstrations.
FOUR: dict[str, Any] = {"max_demos": 4, "sizes": ()}
FEATURES = re.compile(r"quality (\d+) tone (\d+)")
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Effect:
    """What demonstrations do: the model's own weight of quality, how slowly it learns, and its noise."""

    own: float
    slowness: float
    noise: float


EFFECTS = {
    "none": Effect(0.65, 1e9, 20.0),
    "small": Effect(0.6, 30.0, 20.0),
    "large": Effect(0.15, 1.0, 12.0),
}


@dataclass(frozen=True)
class Taught:
    """The result of one seed. Figures of agreement are Q on new rows, but for what is reported."""

    zero_shot: float
    chosen: float
    best: float
    """Of all candidates, in hindsight."""
    demos: int
    calls: int
    corrected: float
    reported: float
    low: float
    high: float

    @property
    def way(self) -> float:
        """How far the choice is from zero-shot to the best candidate."""
        return (self.chosen - self.zero_shot) / max(self.best - self.zero_shot, 1e-9)


def share(*parts: Any) -> float:
    """Return a number in [0, 1) that hangs on the parts alone."""
    text = "|".join(map(str, parts)).encode()
    return int(hashlib.sha256(text).hexdigest()[:8], 16) / 2**32


def make_rows(count: int, seed: int, kind: str) -> list[dict[str, Any]]:
    """Return labelled rows of a document each."""
    draw = random.Random(f"{kind}{seed}")
    rows = []
    for n in range(count):
        quality = draw.randint(0, 100)
        tone = draw.randint(0, 100)
        label = min(100.0, max(0.0, quality + draw.gauss(0, LABEL_NOISE)))
        rows.append(
            {
                "source": f"{kind} source {seed} {n}",
                "output": f"{kind}{n} quality {quality} tone {tone} end",
                "score": round(1 + 4 * label / 100, 2),
                "doc_id": f"{kind}{n}",
            }
        )
    return rows


def answer(request: Request, effect: Effect) -> str:
    """Return the model's score of a text, from what the prompt shows."""
    *before, last = (message["content"] for message in request.messages)
    quality, tone = (int(x) for x in FEATURES.findall(last)[-1])
    shown = [(features, score) for features, score in pairs("\n".join(before))]
    weights = np.array([effect.own, 1 - effect.own])
    if shown:
        x = (np.array([features for features, _ in shown], float) - 50) / 50
        y = (np.array([score for _, score in shown]) - 50) / 50
        slow = effect.slowness * np.eye(2)
        weights = np.linalg.solve(x.T @ x + slow, x.T @ y + effect.slowness * weights)
    first = shown[0][0] if shown else ()
    noise = share(quality, tone, len(shown), first) - 0.5
    place = np.array([quality - 50, tone - 50]) / 50
    score = 50 + 50 * float(weights @ place) + 3.4 * effect.noise * noise
    return f"Score: {round(min(100.0, max(0.0, score)))}"


def pairs(text: str) -> list[tuple[tuple[int, int], float]]:
    """Return quality and tone of each demonstration with its score."""
    found = []
    for part in re.split(r"(?=quality \d+ tone)", text)[1:]:
        (features, *_) = FEATURES.findall(part)
        scores = re.findall(r"Score: (\d+(?:\.\d+)?)", part)
        if scores:
            found.append(((int(features[0]), int(features[1])), float(scores[0])))
    return found


def q_of(judge: Any, rows: list[dict[str, Any]]) -> float:
    """Return a judge's Q on new rows."""
    texts = [{"source": row["source"], "output": row["output"]} for row in rows]
    percents = [verdict.percent for verdict in judge.score_many(texts)]
    people = np.array([row["score"] for row in rows])
    return CorrelationSum()(np.array(percents), people).q


def once(name: str, seed: int, optimizer: str, **options: Any) -> Taught:
    """Search and compile once."""
    effect = EFFECTS[name]
    labels = js.read_labels(make_rows(ROWS, seed, "tr"), scale=(1, 5))
    new = make_rows(NEW, seed, "new")
    method = js.ActiveCritic("vanilla", explain="none", reading="said")
    with scripted_models() as scripted:
        lm, _ = scripted(lambda request: answer(request, effect))
        search = build_optimizer(optimizer, options, seed=seed)
        judge = js.Judge(method, lm=lm, scale=js.Scale(1, 5))
        search.compile(judge, trainset=examples_of(labels))
        assert search.record is not None
        qs = [q_of(trial.program, new) for trial in search.record.tried]
        before = lm.meter.logical
        search = build_optimizer(optimizer, options, seed=seed)
        compiled = js.compile(
            method, labels, lm=lm, optimizer=search, seed=seed, progress=False
        )
        calls = lm.meter.logical - before
        report = compiled.report
        return Taught(
            zero_shot=qs[0],
            chosen=q_of(compiled, new),
            best=max(qs),
            demos=len(compiled.predictors()[0].demos),
            calls=calls,
            corrected=report.selected["corrected"],
            reported=report.heldout.value,
            low=report.heldout.low,
            high=report.heldout.high,
        )


def by_bars(name: str, seed: int, bars: Sequence[float]) -> list[tuple[float, ...]]:
    """Search once; return Q of zero-shot and of what each bar chooses, and of the best, on new rows."""
    effect = EFFECTS[name]
    labels = js.read_labels(make_rows(ROWS, seed, "tr"), scale=(1, 5))
    new = make_rows(NEW, seed, "new")
    method = js.ActiveCritic("vanilla", explain="none", reading="said")
    with scripted_models() as scripted:
        lm, _ = scripted(lambda request: answer(request, effect))
        search = build_optimizer("random-search", FOUR, seed=seed)
        rows = examples_of(labels)
        search.compile(js.Judge(method, lm=lm, scale=js.Scale(1, 5)), trainset=rows)
        assert search.record is not None
        tried = search.record.tried
        qs = [q_of(trial.program, new) for trial in tried]
    found: list[tuple[float, ...]] = []
    for search.sure in bars:
        chosen, _ = search.choose(tried, rows)
        found.append((qs[0], qs[tried.index(chosen)], max(qs)))
    return found


def bar_cells(name: str, seeds: int, bars: Sequence[float]) -> list[list[Any]]:
    """Return the rows of the table of bars."""
    every = np.array([by_bars(name, seed, bars) for seed in range(seeds)])
    cells: list[list[Any]] = []
    for place, bar in enumerate(bars):
        zero, chosen, best = every[:, place].T
        gain = chosen - zero
        most = np.maximum(best - zero, 1e-9)
        error = float(gain.std(ddof=1)) / seeds**0.5
        cells.append(
            [
                name,
                bar,
                seeds,
                float(chosen.mean()),
                [float(gain.mean()), error],
                int((gain != 0).sum()),
                int((gain >= 0.9 * most).sum()),
            ]
        )
    return cells


BAR_COLUMNS = {
    "effect": "{}",
    "sure": "{:.2f}",
    "seeds": "{:d}",
    "chosen": "{:.2f}",
    "gain (standard error)": "{:+.2f} ({:.2f})",
    "zero-shot replaced": "{:d}",
    "nine tenths of the way": "{:d}",
}


def cell(name: str, optimizer: str, runs: list[Taught]) -> list[Any]:
    """Return a row of the table."""
    chosen = np.array([run.chosen for run in runs])
    gain = chosen - np.array([run.zero_shot for run in runs])
    error = float(gain.std(ddof=1)) / len(runs) ** 0.5
    return [
        name,
        optimizer,
        len(runs),
        float(np.mean([run.zero_shot for run in runs])),
        float(chosen.mean()),
        [float(gain.mean()), error],
        float(np.mean([run.best for run in runs])),
        sum(run.demos > 0 for run in runs),
        sum(run.way >= 0.9 for run in runs),
        float(np.mean([run.corrected for run in runs])),
        float(np.mean([run.reported for run in runs])),
        float(np.mean([run.low <= run.chosen <= run.high for run in runs])),
        float(np.mean([run.calls for run in runs])),
    ]


def main() -> None:
    """Print and save the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--effects", nargs="+", default=list(EFFECTS))
    parser.add_argument("--optimizers", nargs="+", default=["random-search"])
    parser.add_argument("--bars", type=float, nargs="+")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    cells: list[list[Any]] = []
    if given.bars:
        for name in given.effects:
            cells += bar_cells(name, given.seeds, given.bars)
        bars = " ".join(f"{bar:g}" for bar in given.bars)
        command = f"python experiments/bench/taught.py --bars {bars}"
        command += f" --seeds {given.seeds} --effects {' '.join(given.effects)}"
        save(given.output, "taught-bars", BAR_COLUMNS, cells, commands=[command])
        return
    for name in given.effects:
        for optimizer in given.optimizers:
            runs = [once(name, seed, optimizer, **FOUR) for seed in range(given.seeds)]
            cells.append(cell(name, optimizer, runs))
            print(*cells[-1], flush=True)
    columns = {
        "effect": "{}",
        "optimizer": "{}",
        "seeds": "{:d}",
        "zero-shot": "{:.2f}",
        "chosen": "{:.2f}",
        "gain (standard error)": "{:+.2f} ({:.2f})",
        "best in hindsight": "{:.2f}",
        "zero-shot replaced": "{:d}",
        "nine tenths of the way": "{:d}",
        "corrected training Q": "{:.2f}",
        "reported Q": "{:.2f}",
        "interval holds the chosen one's Q": "{:.2f}",
        "calls": "{:.0f}",
    }
    command = f"python experiments/bench/taught.py --seeds {given.seeds}"
    save(given.output, "taught", columns, cells, commands=[command])


if __name__ == "__main__":
    main()
