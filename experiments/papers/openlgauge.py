"""OpeNLGauge on one benchmark set: how well answers parse and ground, what each annotator is worth, and its ablations.

    JUDGESMITH_DATA=… python -m judgesmith.experiments.papers.openlgauge wiki_da meaning \\
        --as "simplification/meaning preservation" --annotator local/qwen2.5-1.5b --annotator local/qwen2.5-0.5b \\
        --lm local/qwen2.5-1.5b --rows 40 -o wiki_da.jsonl --examples wiki_da.md --plot subsets.svg

Rows are written as they finish; the same command resumes where it stopped. Subsets of the ensemble come from what the
annotators said already, without a call. --setting 1 to 4 are the paper's ablations of scales and rules (§7.3).
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...datasets.loading import read_labels
from ...datasets.records import Labels
from ...optimizers.agreement.objectives import Q
from ...optimizers.examples import agreement, examples_of
from ...optimizers.fitting.annotators import SubsetAgreement, subsets
from ...programs.openlgauge.judge import OpeNLGauge
from ...signatures.values import Scale
from ..console import Watch
from ..opening import open_model, quiet
from ..scoring import score_file

#: The paper's ablations: overall scale, severities, rules.
SETTINGS: Mapping[int, dict[str, Any]] = {
    0: {},
    1: {"overall": "integers"},
    2: {"overall": "integers", "severity": "categories"},
    3: {"severity": "categories"},
    4: {"rules": False},
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set")
    parser.add_argument("aspect")
    parser.add_argument("--as", dest="library_aspect", required=True)
    parser.add_argument("--annotator", action="append", required=True)
    parser.add_argument("--lm", required=True)
    parser.add_argument("--supervisor", choices=["lm", "none"], default="lm")
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--setting", type=int, choices=SETTINGS, default=0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--examples", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args(arguments)
    labels = read_labels(Path(os.environ["JUDGESMITH_DATA"]) / f"{options.set}.jsonl", aspect=options.aspect)
    order = np.random.default_rng(options.seed).permutation(len(labels))
    labels = labels.subset(sorted(order[: options.rows].tolist()))
    judge = OpeNLGauge(
        options.library_aspect,
        annotators=options.annotator,
        supervisor=options.supervisor,
        scale=Scale(*labels.scale),
        **SETTINGS[options.setting],
    )
    source = options.output.with_suffix(".rows.jsonl")
    lines = (
        {"id": r.id, "source": r.source, "output": r.output, "group": r.group, "score": r.scores[labels.aspect]}
        for r in labels.rows
    )
    source.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    with quiet():
        for name in judge.models():
            open_model(name)
        judge.set_lm(open_model(options.lm))
        with Watch("annotating", len(labels)) as watch:
            summary = score_file(judge, source, options.output, watch=watch, raw=True)
    scored = [json.loads(line) for line in options.output.read_text(encoding="utf-8").splitlines()]
    report(labels, scored, [m.name for m in judge.members], options.plot)
    spent = summary.to_dict()
    print(f"{spent['calls']} calls (and {spent['cached_calls']} from the disk), {spent['seconds']:.0f} s")
    if options.examples:
        options.examples.write_text("\n\n".join(example(row) for row in scored[:5]) + "\n", encoding="utf-8")


def report(labels: Labels, scored: Sequence[dict[str, Any]], names: Sequence[str], plot: Path | None) -> None:
    verdicts = [row["verdict"] for row in scored]
    examples = examples_of(labels)
    print("annotator | parsed | repaired notes | errors a row | exact, normalised, fuzzy, omission, ungrounded | Q")
    columns = []
    for name in names:
        said = [(v.get("opinions") or {}).get(name) for v in verdicts]
        heard = [o for o in said if o and o["percent"] is not None]
        errors = [e for o in heard for e in o["errors"]]
        how = Counter(e["how"] for e in errors)
        column = np.array([math.nan if not o or o["percent"] is None else o["percent"] for o in said])
        columns.append(column)
        ways = ", ".join(str(how[w]) for w in ("exact", "normalised", "fuzzy", "omission", "ungrounded"))
        noted = sum(bool(o["notes"]) for o in heard)
        print(
            f"{name} | {len(heard)}/{len(said)} | {noted} | {len(errors) / max(1, len(heard)):.2f} | {ways} | "
            f"{agreement(column, examples, objective=Q(), seed=0)}"
        )
    matrix = np.stack(columns, axis=1)
    merged = [e for v in verdicts for e in v["errors"]]
    how = Counter(e["how"] for e in merged)
    invented = sum("not reported by any annotator" in e["notes"] for e in merged)
    failed = sum("the supervisor failed" in note for v in verdicts for note in v["notes"])
    print(f"merged errors: {len(merged)}, {dict(how)}, invented {invented}, supervisor failed in {failed} rows")
    found = subsets(matrix, list(names), examples)
    for subset in found:
        print(f"{' + '.join(subset.members)}: {subset.found}")
    if plot:
        draw(found, plot)


def draw(found: Sequence[SubsetAgreement], path: Path) -> None:
    """Agreement of every subset by its size, as the paper's Figures 4 to 9."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.2), layout="constrained")
    axes = figure.subplots()
    sizes = sorted({len(s.members) for s in found})
    axes.plot(sizes, [np.mean([s.found.q for s in found if len(s.members) == k]) for k in sizes], "-", label="mean")
    axes.plot([len(s.members) for s in found], [s.found.q for s in found], "o", alpha=0.6, label="a subset")
    axes.set(xlabel="annotators", ylabel="Q", xticks=sizes)
    axes.legend()
    figure.savefig(path)


def example(row: dict[str, Any]) -> str:
    """One row with its annotations as they came."""
    verdict = row["verdict"]
    lines = [f"### {row['id']}: people {row['score']:g}, judge {verdict['score']}", f"- source: {row['source']}"]
    lines.append(f"- output: {row['output']}")
    for name, opinion in (verdict.get("opinions") or {}).items():
        what = opinion["label"] or opinion["failure"]
        lines.append(f"- {name}: {what}. {opinion['explanation']}")
        lines += [f"  - [{e['severity']}] {e['how']}: {e['text']!r}: {e['explanation']}" for e in opinion["errors"]]
    lines.append("- merged:")
    lines += [f"  - [{e['severity']}] {e['how']}: {e['text']!r}: {e['explanation']}" for e in verdict["errors"]]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
