"""Replay `judgesmith compare` on recorded judges: how often does it decide, and how often is it wrong?

    JUDGESMITH_DATA=… nice python experiments/bench/versions.py WORK.jsonl [--pairs 40] [--draws 2] [--save]

Each pair of systems of a set is a base and a new version, all others are earlier versions that people rated on 20
documents. The pair has labels of both, of the base or of none. Two kinds of pairs are there on purpose. Those of *one
model* differ in its size, prompt or decoding. *Near ties* are made: the new version is the base, with every fourth
document answered by the other system.

People's answer is their mean difference over all documents. A verdict's expected error is the probability that this
difference has the other sign, with the differences of its set and kind as their prior. So verdicts on pairs that
people cannot tell apart count, too. All recorded judges of a set take part.

WORK.jsonl holds one line for each judge and aspect; a run that was stopped goes on from there.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
import shlex
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.comparison import compare
from judgesmith.experiments.bench.kept import Kept
from judgesmith.experiments.bench.sets import read_set
from judgesmith.experiments.studies.saving import save_all
from judgesmith.programs.baselines.metrics import reference_metric
from judgesmith.programs.readings.kinds import surface

Matrix = npt.NDArray[np.float64]
RESULTS = Path(__file__).parents[1] / "results" / "data"
LABELLED = 20
FEWEST = 25
#: Fewer verdicts give no interval over sets.
MANY = 600
NEAR = 0.25
SUMMARIES = ("coherence", "consistency", "fluency", "relevance")
STORIES = (
    "relevance",
    "coherence",
    "empathy",
    "surprise",
    "engagement",
    "complexity",
)
PAIRS = ("two systems", "one model", "near tie")
ROADS = ("both and earlier", "both alone", "base", "none")
#: The judges of the first, smaller replay, which were chosen for their agreement.
CHOSEN = (
    *(
        f"summeval {a} {m}.rts.{a}"
        for a in SUMMARIES
        for m in ("gpt-4-0314", "gpt-3.5-turbo-0301")
    ),
    *(f"hanna {a} {m}" for a in STORIES for m in ("OrcaPlatypus", "ChatGPT")),
    "wmt22_ende overall gpt-4.gemba_sqm_noref",
    "wmt23_zhen overall gpt-4.gemba_mqm",
    "wmt23_ende overall gpt-4.gemba_mqm",
    "wmt23_ende esa gpt-4.gemba_mqm",
    "basse_es coherence gpt-4o.coherence",
    "basse_es 5w1h gpt-4o.5w1h",
    "basse_es relevance gpt-4o.relevance",
    "faithbench faithfulness gpt-4o",
)


@dataclass(frozen=True)
class Task:
    """A judge's scores and people's ratings of one aspect -> (systems, documents), NaN where one is missing."""

    set: str
    name: str
    systems: tuple[str, ...]
    judge: Matrix
    human: Matrix


Value = Callable[[Mapping[str, Any]], float | None]


def task(of: str, name: str, rows: Sequence[Any], human: Value, judge: Value) -> Task:
    """Return the rows of systems with 15 documents or more that both scored."""
    systems = sorted({str(row["system"]) for row in rows if row.get("system")})
    documents = sorted({row["doc_id"] for row in rows})
    tables = [np.full((len(systems), len(documents)), np.nan) for _ in range(2)]
    for row in rows:
        if not row.get("system"):
            continue
        at = systems.index(str(row["system"])), documents.index(row["doc_id"])
        for table, value in zip(tables, (human, judge), strict=True):
            found = value(row)
            if found is not None:
                table[at] = found
    both = ~np.isnan(tables[0]) & ~np.isnan(tables[1])
    kept = both.sum(axis=1) >= 15
    people, scores = (np.where(both, table, np.nan)[kept] for table in tables)
    names = tuple(np.array(systems, dtype=object)[kept].tolist())
    return Task(of, f"{of} {name}", names, scores, people)


def tasks() -> Iterator[Task]:
    """Yield every recorded judge of every set, aspect by aspect."""
    yield from _with_metrics("summeval", SUMMARIES, _by_prompt)
    yield from _with_metrics("hanna", STORIES, _by_model)
    overall = ("overall",)
    yield from _with_metrics("openmeva_roc", overall, lambda names, _: ["chatgpt"])
    dialogue = ("naturalness", "coherence", "engagingness", "overall")
    yield from _with_metrics("topical_chat", dialogue, lambda _, a: [f"unieval_{a}"])
    simple = ("fluency", "meaning", "simplicity")
    yield from _with_metrics("wiki_da", simple, lambda _, a: ["bertscore_F1_asset"])
    data = ("correctness", "relevance", "fluency")
    yield from _with_readings("webnlg2020", data, _overlap)
    yield from _with_readings("wmt24_esa", overall, _chrf)
    for name in STRONG:
        rows = read_set(f"strong/{name}")
        known = sorted({judge for row in rows for judge in row["judges"]})
        for aspect, pattern in STRONG[name].items():
            for judge in known:
                if re.fullmatch(pattern, judge):
                    yield task(
                        name,
                        f"{aspect} {judge}",
                        rows,
                        _rating(aspect),
                        _of_judge(judge),
                    )


def panels(every: Iterable[Task]) -> Iterator[Task]:
    """Yield the equal panel of each set's recorded judges of an aspect: the mean of their standardised scores."""
    of: dict[tuple[str, str], list[Task]] = defaultdict(list)
    for one in every:
        of[one.set, one.name.split()[1]].append(one)
    for (name, aspect), judges in of.items():
        same = [one for one in judges if one.systems == judges[0].systems]
        if len(same) < 2:
            continue
        scores = [
            (one.judge - np.nanmean(one.judge)) / (np.nanstd(one.judge) + 1e-9)
            for one in same
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mean = np.nanmean(scores, axis=0)
        title = f"{name} {aspect} {PANEL}"
        yield Task(name, title, same[0].systems, mean, same[0].human)


#: What the name of a panel ends with.
PANEL = "panel"


def _with_readings(
    of: str, aspects: Sequence[str], score: Callable[[Sequence[Any]], list[float]]
) -> Iterator[Task]:
    """Yield a judge that is computed from the texts, of a set of which no judge is recorded."""
    rows = read_set(f"more/{of}")
    scores = dict(zip((row["id"] for row in rows), score(rows), strict=True))
    for aspect in aspects:
        name = f"{aspect} {score.__name__.strip('_')}"
        yield task(of, name, rows, _rating(aspect), lambda row: scores[row["id"]])


def _overlap(rows: Sequence[Any]) -> list[float]:
    """Return the share of the source's words that are in the output."""
    return [surface(row["source"], row["output"])["of_source"] for row in rows]


def _chrf(rows: Sequence[Any]) -> list[float]:
    """Return chrF with the reference."""
    verdicts = reference_metric("metric/chrf").score_many(rows)
    return [verdict.score for verdict in verdicts]


#: Aspects, and the judges of each.
STRONG = {
    "basse_es": {a: rf".*\.{a}" for a in (*SUMMARIES, "5w1h")},
    "faithbench": {"faithfulness": "gpt.*"},
    "qgeval_answerability": {"answerability": "gpt.*"},
    "wmt22_ende": {"overall": ".*"},
    "wmt23_ende": {"overall": "gpt.*", "esa": "gpt.*"},
    "wmt23_zhen": {"overall": "gpt.*"},
    "quintd": {
        a: rf"gpt-4\.{a}"
        for a in ("errors_neg", "incorrect_errors_neg", "not_checkable_errors_neg")
    },
    "ttcw": {"passes": ".*"},
}


def _rating(aspect: str) -> Value:
    return lambda row: row["scores"].get(aspect)


def _of_judge(name: str) -> Value:
    return lambda row: row["judges"].get(name)


def _by_prompt(names: set[str], aspect: str) -> list[str]:
    return sorted(
        name for name in names if re.fullmatch(rf"[^ ]+\.\w+\.{aspect}", name)
    )


def _by_model(names: set[str], aspect: str) -> list[str]:
    models = {name.split(".p")[0] for name in names if name.endswith(f".{aspect}")}
    return sorted(model for model in models if f"{model}.p1.{aspect}" in names)


def _with_metrics(
    of: str, aspects: Sequence[str], judges: Callable[[set[str], str], list[str]]
) -> Iterator[Task]:
    """Yield the judges of a set whose scores stand beside it; of several prompts of one model the mean."""
    rows = read_set(of)
    metrics = {line["id"]: line["metrics"] for line in read_set(f"{of}.metrics")}
    names = {name for values in metrics.values() for name in values}
    for aspect in aspects:
        for judge in judges(names, aspect):
            prompts = [f"{judge}.p{k}.{aspect}" for k in range(1, 5)]
            columns = [one for one in prompts if one in names] or [judge]

            def scored(
                row: Mapping[str, Any], columns: Sequence[str] = columns
            ) -> float | None:
                own = metrics.get(row["id"], {})
                values = [own[one] for one in columns if own.get(one) is not None]
                return float(np.mean(values)) if values else None

            yield task(of, f"{aspect} {judge}", rows, _rating(aspect), scored)


def family(of: str, system: str) -> str:
    """Return the model of a system, whose sizes, prompts and decodings are its versions; as its name tells."""
    if of == "wmt22_ende" and system.endswith("bestmbr"):
        return "bestmbr"
    if of == "basse_es":
        return system.split("-")[0]
    return re.split(r"_| \(", system)[0]


# One task ------------------------------------------------------------------------------------------------------------


def replay(task: Task, pairs: int, draws: int) -> list[dict[str, Any]]:
    """Return a record for each pair, draw of labelled documents, and road."""
    seed = sum(map(ord, task.name))
    rng = np.random.default_rng(seed)
    count = task.human.shape[1]
    found = []
    for draw in range(draws):
        labelled = np.zeros(count, dtype=np.bool_)
        labelled[rng.permutation(count)[:LABELLED]] = True
        for kind, a, b in chosen_pairs(task, pairs, rng):
            scores, people, same = both_of(task, kind, a, b, rng)
            common = ~np.isnan(people).any(axis=0)
            if common.sum() < FEWEST or (common & labelled).sum() < LABELLED // 2:
                continue
            change = (people[1] - people[0])[common]
            truth = (
                float(change.mean()),
                float(change.std(ddof=1) / math.sqrt(len(change))),
            )
            about = {"kind": kind, "draw": draw, "d": truth[0], "s": truth[1]}
            given = verdicts(task, (a, b), scores, people, labelled, same)
            for road, verdict in given:
                found.append(about | {"road": road} | verdict)
    return found


def chosen_pairs(
    task: Task, most: int, rng: np.random.Generator
) -> list[tuple[str, int, int]]:
    """Return pairs of systems of each kind, in an order drawn by chance."""
    every = list(itertools.combinations(range(len(task.systems)), 2))
    of_one = [
        pair
        for pair in every
        if len({family(task.set, task.systems[k]) for k in pair}) == 1
    ]
    found = []
    for kind, some in zip(PAIRS, (every, of_one, every), strict=True):
        for place in rng.permutation(len(some))[:most].tolist():
            pair = rng.permutation(some[place]).tolist()
            found.append((kind, pair[0], pair[1]))
    return found


def both_of(
    task: Task, kind: str, a: int, b: int, rng: np.random.Generator
) -> tuple[Matrix, Matrix, npt.NDArray[np.bool_]]:
    """Return scores and ratings of base and new -> (2, documents) each, and the documents with the same output."""
    scores = task.judge[[a, b]].copy()
    people = task.human[[a, b]].copy()
    count = people.shape[1]
    same = np.zeros(count, dtype=np.bool_)
    if kind == "near tie":
        same[rng.permutation(count)[round(NEAR * count) :]] = True
        scores[1, same] = scores[0, same]
        people[1, same] = people[0, same]
    return scores, people, same


def verdicts(
    task: Task,
    pair: tuple[int, int],
    scores: Matrix,
    people: Matrix,
    labelled: npt.NDArray[np.bool_],
    same: npt.NDArray[np.bool_],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each road with its verdict: 1 for better, -1 for worse, 0 for undecided, and its p."""
    others = [k for k in range(len(task.systems)) if k not in pair]
    count = people.shape[1]
    of = ["base"] * count + ["new"] * count
    of += [task.systems[k] for k in others for _ in range(count)]
    documents = np.tile(np.arange(count), 2 + len(others))
    judged = np.concatenate([scores.ravel(), task.judge[others].ravel()])
    rated = np.concatenate([people.ravel(), task.human[others].ravel()])
    rated = np.where(np.tile(labelled, 2 + len(others)), rated, np.nan)
    texts = np.arange(len(of))
    if same.any():
        texts[count : 2 * count][same] = texts[:count][same]
    present = ~np.isnan(judged)
    for road in ROADS:
        y = rated.copy()
        if road == "none":
            y[: 2 * count] = np.nan
        if road == "base":
            y[count : 2 * count] = np.nan
        used = present.copy()
        if road == "both alone":
            used[2 * count :] = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = compare(
                judged[used],
                y[used],
                systems=np.array(of, dtype=object)[used].tolist(),
                documents=documents[used].tolist(),
                base="base",
                new="new",
                outputs=texts[used].tolist(),
            )
        sign = {"better": 1, "worse": -1}.get(found.verdict, 0)
        likely = 0 if math.isnan(found.difference) else int(np.sign(found.difference))
        yield road, {"v": sign, "p": found.p, "r": found.reverse, "sign": likely}
    change = scores[1] - scores[0]
    change = change[~np.isnan(change)]
    t = change.mean() / (change.std(ddof=1) / math.sqrt(len(change)) + 1e-12)
    sure = scipy.stats.t.sf(abs(t), len(change) - 1) <= 0.025
    yield "the judge's own t", {"v": int(np.sign(t)) if sure else 0, "p": math.nan}
    own = (people[1] - people[0])[labelled & ~np.isnan(people).any(axis=0)]
    t = own.mean() / (own.std(ddof=1) / math.sqrt(len(own)) + 1e-12)
    sure = scipy.stats.t.sf(abs(t), len(own) - 1) <= 0.025
    yield "people's own t", {"v": int(np.sign(t)) if sure else 0, "p": math.nan}


# All of them ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """A verdict with what people say.

    decided: 1, -1, or 0 for none. told: people tell the pair apart (|t| > 2). wrong: they say the other sign. expected:
    the probability that their difference has another sign than the likelier one.
    said: the verdict's own probability of a wrong sign.
    """

    set: str
    task: str
    systems: int
    kind: str
    road: str
    decided: int
    told: bool
    wrong: bool
    expected: float
    said: float


def read(work: Path, most: float = 0.05) -> list[Verdict]:
    """Return the verdicts of a work file.

    most: the largest probability of a wrong sign where it decides alone.
    """
    found = []
    for line in Kept(work).lines:
        by_kind = defaultdict(list)
        for record in line["records"]:
            by_kind[record["kind"]].append(record)
        for kind, records in by_kind.items():
            own = [one for one in records if one["road"] == "none"]
            spread = np.mean([one["d"] ** 2 - one["s"] ** 2 for one in own])
            prior = max(float(spread), 1e-9)
            about = line["set"], line["task"], line["systems"], kind
            found += [_verdict(one, prior, about) for one in records]
            bold = [
                _by_first_number(one, most) for one in records if one["road"] in BOLD
            ]
            found += [_verdict(one, prior, about) for one in bold]
    return found


def _by_first_number(record: Mapping[str, Any], most: float) -> dict[str, Any]:
    """Return a record as it would be if the probability of a wrong sign decided alone."""
    p = math.nan if record["p"] is None else record["p"]
    sign = record["sign"] if p <= 2 * most else 0
    return {**record, "road": BOLD[record["road"]], "v": sign}


def _verdict(
    record: Mapping[str, Any], prior: float, about: tuple[str, str, int, str]
) -> Verdict:
    noise = record["s"] ** 2 + 1e-12
    mean = record["d"] * prior / (prior + noise)
    above = float(scipy.special.ndtr(mean / math.sqrt(prior * noise / (prior + noise))))
    sign = record["v"]
    likely = record.get("sign", sign) if sign == 0 else sign
    told = bool(record["d"] ** 2 > 4 * noise)
    wrong = sign * record["d"] < 0
    expected = 1 - above if likely > 0 else above
    said = math.nan if record["p"] is None else record["p"] / 2
    return Verdict(*about, record["road"], sign, told, wrong, expected, said)


def rates(verdicts: Sequence[Verdict]) -> list[float]:
    """Return decided and wrong of pairs that people tell, expected wrong of all decided, decided of the others."""
    told = [one for one in verdicts if one.told]
    others = [one for one in verdicts if not one.told]
    of_told = [one for one in told if one.decided]
    every = [one for one in verdicts if one.decided]
    return [
        _share(one.decided != 0 for one in told),
        _share(one.wrong for one in of_told),
        _share(one.expected for one in every),
        _share(one.decided != 0 for one in others),
    ]


def _share(values: Iterable[float]) -> float:
    every = list(values)
    return sum(every) / len(every) if every else math.nan


def over_sets(verdicts: Sequence[Verdict]) -> list[list[float]]:
    """Return each rate with its 95 % interval, by the jackknife over sets and Student's t."""
    whole = rates(verdicts)
    sets = sorted({one.set for one in verdicts})
    without = np.array(
        [rates([one for one in verdicts if one.set != name]) for name in sets]
    )
    count = len(sets)
    if count < 3 or not len(verdicts) > MANY:
        return [[value, math.nan, math.nan] for value in whole]
    middle = without.sum(axis=0) / count
    spread = ((without - middle) ** 2).sum(axis=0)
    reach = scipy.special.stdtrit(count - 1, 0.975) * np.sqrt(
        (count - 1) / count * spread
    )
    return [
        [value, max(0.0, value - half), min(1.0, value + half)]
        for value, half in zip(whole, reach, strict=True)
    ]


def in_cell(ends: Sequence[float], digits: int) -> str:
    """Return a rate with its interval, as far as there is one."""
    value, low, high = (100 * end for end in ends)
    if math.isnan(value):
        return "–"
    text = f"{value:.{digits}f} %"
    if math.isnan(low) or value == 0:
        return text
    return f"{text} [{low:.{digits}f}, {high:.{digits}f}]"


def write(work: Path, command: str, notes: str = "") -> None:
    """Write the tables of the page. notes: what a reader of them has to know."""
    every = read(work)
    judges = [one for one in every if not one.task.endswith(PANEL)]
    columns = {
        "judges": "",
        "pair": "",
        "people rated": "",
        "verdicts": "{:d}",
        "decided, of those people tell": "",
        "wrong of these": "",
        "expected wrong of all decided": "",
        "decided, of the others": "",
    }
    groups = {
        "all": [one for one in judges if one.systems >= 10],
        "an equal panel": [one for one in every if one.task.endswith(PANEL)],
        "chosen": [one for one in every if one.task in CHOSEN],
        "all, fewer than 10 systems": [one for one in judges if one.systems < 10],
    }
    roads = (*ROADS, *BOLD.values(), "the judge's own t", "people's own t")
    rows = []
    for name, some in groups.items():
        for kind in PAIRS if name == "all" else PAIRS[:1]:
            for road in roads:
                own = [one for one in some if (one.kind, one.road) == (kind, road)]
                if own:
                    cells = [
                        in_cell(value, digits)
                        for value, digits in zip(
                            over_sets(own), (0, 1, 1, 0), strict=True
                        )
                    ]
                    rows.append([name, kind, SAID[road], len(own), *cells])
    counts: dict[str, Any] = {
        "notes": notes,
        "judges": len({one.task for one in judges}),
        "sets": len({one.set for one in judges}),
    }
    tables = {
        "versions": (columns, rows),
        "versions-tried": tried(work),
        "versions-sets": _by_set(judges),
        "versions-said": _said(judges),
    }
    save_all(RESULTS, tables, command, **counts)


#: The same roads, where the first of the two numbers decides alone.
BOLD = {"base": "base, boldly", "none": "none, boldly"}
#: How the roads are called in the tables.
SAID = {
    "both and earlier": "both and earlier versions",
    "both alone": "both",
    "base": "the base and earlier versions",
    "none": "earlier versions",
    "base, boldly": "the base and earlier versions; first number alone",
    "none, boldly": "earlier versions; first number alone",
    "the judge's own t": "none: the judge's paired t",
    "people's own t": "both: people's paired t",
}


def tried(work: Path) -> tuple[dict[str, str], list[list[Any]]]:
    """Return what other bounds of the first number would decide, of two systems and of versions of one model."""
    columns = {"people rated": "", "a wrong sign up to": "{:.1%}"}
    kinds = {"two systems": PAIRS[0], "one model": PAIRS[1], "near tie": PAIRS[2]}
    for title in kinds:
        columns |= {f"{title}: decided": "{:.0%}", f"{title}: wrong": "{:.1%}"}
    columns |= {"chosen judges: decided": "{:.0%}", "chosen judges: wrong": "{:.1%}"}
    rows = []
    for road, most in itertools.product(("base", "none"), BOUNDS):
        every = read(work, most)
        own = [one for one in every if one.road == BOLD[road] and one.systems >= 10]
        own = [one for one in own if not one.task.endswith(PANEL)]
        row: list[Any] = [SAID[road], most]
        for kind in kinds.values():
            found = rates([one for one in own if one.kind == kind])
            row += [found[0], found[2]]
        chosen = [one for one in own if one.task in CHOSEN and one.kind == PAIRS[0]]
        found = rates(chosen)
        rows.append([*row, found[0], found[2]])
    return columns, rows


#: Bounds of the probability of a wrong sign that are tried.
BOUNDS = (0.01, 0.025, 0.05, 0.075, 0.1)


def _by_set(every: Sequence[Verdict]) -> tuple[dict[str, str], list[list[Any]]]:
    share = "{:.0%}"
    error = "{:.1%}"
    columns = {"set": "", "judges": "{:d}", "versions": "{:d}"}
    roads = ("both alone", "base", "none", "the judge's own t")
    for road in roads:
        columns |= {
            f"{SAID[road]}: decided": share,
            f"{SAID[road]}: expected wrong": error,
        }
    rows = []
    for name in dict.fromkeys(one.set for one in every):
        own = [one for one in every if (one.set, one.kind) == (name, PAIRS[0])]
        if not own:
            continue
        row: list[Any] = [
            name,
            len({one.task for one in own}),
            max(one.systems for one in own),
        ]
        for road in roads:
            found = rates([one for one in own if one.road == road])
            row += [found[0], found[2]]
        rows.append(row)
    return columns, rows


def _said(every: Sequence[Verdict]) -> tuple[dict[str, str], list[list[Any]]]:
    columns = {
        "people rated": "",
        "said": "{:.3f} to {:.3f}",
        "verdicts": "{:d}",
        "mean said": "{:.3f}",
        "came": "{:.3f}",
    }
    ends = (0, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5)
    rows = []
    for road in ("base", "none"):
        for low, high in itertools.pairwise(ends):
            own = [
                one
                for one in every
                if one.road == road and one.kind == PAIRS[0] and low < one.said <= high
            ]
            if own:
                said = np.mean([one.said for one in own])
                came = np.mean([one.expected for one in own])
                rows.append([SAID[road], [low, high], len(own), said, came])
    return columns, rows


def main() -> None:
    """Run what is missing, and save the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--only", default="", help="tasks whose name begins so")
    parser.add_argument("--panels", action="store_true", help="run panels alone")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--notes", default="", help="what the tables say of the run")
    options = parser.parse_args()
    kept = Kept(options.work)
    done = {line["task"] for line in kept.lines}
    for one in panels(tasks()) if options.panels else tasks():
        if one.name in done or not one.name.startswith(options.only):
            continue
        records = replay(one, options.pairs, options.draws)
        line = {"task": one.name, "set": one.set, "systems": len(one.systems)}
        kept.add(line | {"records": records})
        print(one.name, one.human.shape, len(records), flush=True)
    if options.save:
        command = shlex.join(["python", "experiments/bench/versions.py", *sys.argv[1:]])
        write(options.work, command, options.notes)


if __name__ == "__main__":
    main()
