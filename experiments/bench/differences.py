"""Measure false alarms of the tests between judges, the cover of their intervals, and contradictions of the two.

    python experiments/bench/differences.py [--repeats 500] [--data FOLDER] [--only CASE …]

Simulated: three judges of 16 systems' outputs of 100 documents. Real: five metrics of SummEval, all pairs of every
aspect and level (--data or JUDGESMITH_DATA: the folder that has summeval.jsonl and summeval.metrics.jsonl).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.correlation import Level, correlate
from judgesmith.agreement.meta.comparisons import comparisons
from judgesmith.agreement.meta.evaluation import meta_evaluate, rows_of
from judgesmith.agreement.meta.inputs import Beside, EvaluationOptions, aspects_of
from judgesmith.agreement.resampling import Measure
from judgesmith.agreement.significance import permutation_test
from judgesmith.experiments.studies.saving import save

Vector = npt.NDArray[np.float64]
RESULTS = Path(__file__).parents[1] / "results" / "data"
LEVELS: tuple[Level, ...] = ("pooled", "sample", "system")
METRICS = (
    "rouge1_f",
    "rougeL_f",
    "bart_score_src_hypo",
    "coco_span",
    "bert_score_f_ref0",
)
ASPECTS = ("coherence", "consistency", "fluency", "relevance")


@dataclass(frozen=True)
class Case:
    """Judges that see the quality of a text with errors of three kinds.

    favours: spread of each judge's bonus for a system; noise: for a text, by judge. pair: the judges that are compared.
    """

    name: str
    favours: float
    noise: tuple[float, float, float]
    pair: tuple[str, str] = ("a", "b")
    systems: int = 16
    documents: int = 100


CASES = (
    Case("equal judges, no favourites", 0.0, (1, 1, 1)),
    Case("equal judges, favourite systems", 0.3, (1, 1, 1)),
    Case(
        "favourite systems, one judge with four times the noise",
        0.3,
        (1, 1, 4),
        ("a", "c"),
    ),
    Case("equal judges, favourite systems, 20 documents", 0.3, (1, 1, 1), documents=20),
    Case("equal judges, favourites among 6 systems", 0.3, (1, 1, 1), systems=6),
)


class World:
    """Systems and the judges' bias for them; documents are drawn as often as one likes."""

    def __init__(self, case: Case, rng: np.random.Generator, systems: int) -> None:
        self.case = case
        self.rng = rng
        self.quality = 0.3 * rng.normal(size=systems)
        self.favour = case.favours * rng.normal(size=(3, systems))

    def draw(self, documents: int) -> dict[str, Vector]:
        """Scores of people ("human") and of the judges, shape (systems, documents)."""
        rng = self.rng
        shape = (len(self.quality), documents)
        human = (
            self.quality[:, None]
            + 0.5 * rng.normal(size=documents)
            + rng.normal(size=shape)
        )
        found = {"human": human}
        for name, favour, noise in zip(
            "abc", self.favour, self.case.noise, strict=True
        ):
            own = 0.3 * rng.normal(size=documents) + noise * rng.normal(size=shape)
            found[name] = human + favour[:, None] + own
        return found

    def difference(self, documents: int, level: str) -> float:
        """Of the pair on these systems, with that number of documents; at system level with endlessly many."""
        if level == "system":
            scores = {"human": self.quality} | {
                n: self.quality + f for n, f in zip("abc", self.favour, strict=True)
            }
            values = [
                correlate(scores[name], scores["human"], level="pooled").value
                for name in self.case.pair
            ]
        else:
            drawn = self.draw(documents)
            shape = (len(self.quality), documents)
            docs = np.indices(shape)[1].ravel()
            human = drawn["human"].ravel()
            values = [
                correlate(drawn[name].ravel(), human, level=level, documents=docs).value  # type: ignore[arg-type]
                for name in self.case.pair
            ]
        return values[0] - values[1]


def truth(case: Case, level: str) -> float:
    """Return the difference on systems and documents at large; within documents, on as many systems as there are."""
    rng = np.random.default_rng(7)
    systems = {"pooled": 300, "sample": case.systems, "system": 5000}[level]
    return float(
        np.mean([World(case, rng, systems).difference(300, level) for _ in range(30)])
    )


def simulate(case: Case, repeats: int) -> Iterator[list[Any]]:
    """Yield a row for each level and kind of interval: false alarms of one pair and of any of three, cover, width."""
    at_large = {level: truth(case, level) for level in LEVELS}
    found: dict[tuple[Level, bool], list[tuple[float, ...]]] = {}
    for seed in range(repeats):
        world = World(case, np.random.default_rng([seed, 5]), case.systems)
        drawn = world.draw(case.documents)
        systems, documents = (
            codes.ravel() for codes in np.indices(drawn["human"].shape)
        )
        human = drawn["human"].ravel()
        judges = {name: drawn[name].ravel() for name in "abc"}
        ids = {"documents": documents, "systems": systems}
        aspects = aspects_of(
            judges, {"overall": human}, documents, systems, Beside(), []
        )
        same = not case.favours and len(set(case.noise)) == 1
        here = {
            level: 0.0 if same else world.difference(2000, level) for level in LEVELS
        }
        for wide in (False, True):
            options = EvaluationOptions(rounds=200, seed=seed, new_systems=wide)
            for level in LEVELS:
                rows = comparisons(tuple("abc"), aspects, [level], options, [])
                (row,) = (row for row in rows if (row["a"], row["b"]) == case.pair)
                single = 2 * scipy.stats.t.sf(
                    abs(row["difference"]) / row["error"], row["freedom"]
                )
                half = scipy.stats.t.isf(0.025, row["freedom"]) * row["error"]
                target = at_large[level] if wide else here[level]
                any_of_three = min(row["p"] for row in rows) < 0.05
                swapped = 1.0
                if not wide:
                    measure = Measure(human, level=level, coefficient="spearman", **ids)
                    one, other = (judges[name] for name in case.pair)
                    swapped = permutation_test(
                        one, other, measure, rounds=199, seed=seed
                    ).p
                held = abs(row["difference"] - target) <= half
                now = (single < 0.05, any_of_three, held, 2 * half, swapped < 0.05)
                found.setdefault((level, wide), []).append(tuple(map(float, now)))
    for (level, wide), numbers in sorted(
        found.items(), key=lambda item: (LEVELS.index(item[0][0]), item[0][1])
    ):
        alarm, family, held, width, swapped = np.mean(numbers, axis=0).tolist()
        equal = len(set(case.noise)) == 1 and (
            wide or not case.favours
        )  # else the judges do differ
        about = [case.name, level, "other systems" if wide else "these systems"]
        yield [
            *about,
            alarm if equal else None,
            family if equal else None,
            held,
            width,
            None if wide else swapped,
        ]


def contradictions(folder: Path) -> Iterator[list[Any]]:
    """Of 40 pairs a level: p below .05, 0 outside the interval, and where the two say different things."""
    rows = [
        json.loads(line)
        for line in (folder / "summeval.jsonl").read_text("utf-8").splitlines()[:800]
    ]
    lines = (
        json.loads(line)
        for line in (folder / "summeval.metrics.jsonl").read_text("utf-8").splitlines()
    )
    metrics = {line["id"]: line["metrics"] for line in lines}
    judges = {name: [metrics[row["id"]][name] for row in rows] for name in METRICS}
    ids = {
        "documents": [row["doc_id"] for row in rows],
        "systems": [row["system"] for row in rows],
    }
    for level, wide in itertools.product(LEVELS, (False, True)):
        counts = np.zeros(5, dtype=int)
        for aspect, pair in itertools.product(
            ASPECTS, itertools.combinations(METRICS, 2)
        ):
            human = [row["scores"][aspect] for row in rows]
            options: Mapping[str, Any] = {
                "coefficients": ("spearman",),
                "rounds": 400,
            } | ids
            two = {name: judges[name] for name in pair}
            result = meta_evaluate(
                two, human, levels=(level,), new_systems=wide, **options
            )
            (row,) = rows_of(result.comparisons)
            outside = row["low"] > 0 or row["high"] < 0
            measure = Measure(human, level=level, coefficient="spearman", **ids)
            one, other = two.values()
            before = permutation_test(one, other, measure, rounds=400).p < 0.05
            counts += [
                1,
                row["p"] < 0.05,
                outside,
                (row["p"] < 0.05) != outside,
                before and not outside,
            ]
        yield [level, "other systems" if wide else "these systems", *counts.tolist()]


def main() -> None:
    """Print and save the tables of simulated judges and of SummEval's metrics."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument("--repeats", type=int, default=500)
    parser.add_argument("--data", type=Path, default=os.environ.get("JUDGESMITH_DATA"))
    parser.add_argument("--only", choices=("simulated", "summeval"))
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    command = "python experiments/bench/differences.py"
    if arguments.only != "summeval":
        rows = []
        for case in CASES:
            for row in simulate(case, arguments.repeats):
                print(*row, sep="\t", flush=True)
                rows.append(row)
        columns = {
            "case": "",
            "level": "",
            "speaks of": "",
            "false alarms, one pair": "{:.3f}",
            "any of three pairs": "{:.3f}",
            "interval holds the truth": "{:.3f}",
            "width": "{:.2f}",
            "permutation of documents: p < .05": "{:.3f}",
        }
        command = f"{command} --only simulated --repeats {arguments.repeats}"
        save(
            arguments.output,
            "differences",
            columns,
            rows,
            commands=[command],
            notes=f"{arguments.repeats} repeats a case",
        )
    if arguments.only != "simulated" and arguments.data is not None:
        real = list(contradictions(arguments.data))
        for row in real:
            print(*row, sep="\t", flush=True)
        columns = {
            "level": "",
            "speaks of": "",
            "pairs": "{}",
            "p < .05": "{}",
            "0 outside the interval": "{}",
            "contradictions": "{}",
            "permutation p < .05 with 0 inside": "{}",
        }
        save(
            arguments.output,
            "differences-summeval",
            columns,
            real,
            commands=[f"{command} --only summeval"],
        )


if __name__ == "__main__":
    main()
