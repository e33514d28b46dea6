"""`judgesmith check --level system`: which systems labels tell apart, alone and with a judge's means."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np


def test_systems_are_told_apart_by_labels_and_judge(cli: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "doc_id", "system", "source", "output", "rating", "gpt"])
        for d in range(40):
            hard = rng.normal()
            for s in range(8):
                quality = 0.4 * s + hard + rng.normal()
                rating = f"{quality:.3f}" if d < 6 else ""
                judged = f"{quality + rng.normal():.3f}"
                texts = f"Question {d * 7919}?", f"Answer {d * 104729} of {s}"
                row = f"{d}.{s}", f"d{d}", f"s{s}", *texts, rating, judged
                writer.writerow(row)
    words = ("check", path, "--human", "rating", "--judge", "gpt")
    (told,) = cli(*words, "--level", "system", "--json").told["systems"]
    less = ("--level", "system", "--json", "--confidence", 0.8)
    (narrow,) = cli(*words, *less).told["systems"]
    assert told["confidence"] == 0.95
    assert narrow["confidence"] == 0.8
    assert told["on_line"] == 8
    assert told["told"] > told["alone"]
    said = " ".join(cli(*words, "--level", "system").said.split())
    assert (
        f"Of 28 pairs of systems, people's labels alone tell {told['alone']} apart in rating, and {told['told']} with "
        "gpt's scores, drawn to the line of people's means by the judge's."
    ) in said
    assert "pairs of systems" not in cli(*words).said  # asked for by its level
    (answer,) = cli(*words, "--json").told["answers"]
    assert answer["facts"][0].startswith("Spearman ρ: among the rows of one system 0.")
    assert ", of one document 0." in answer["facts"][0]
    assert ", over all rows 0." in answer["facts"][0]


def test_labels_drawn_unequally_are_weighed(cli: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["id", "doc_id", "system", "output", "rating", "gpt", "label_chance"]
        )
        for d, s in np.ndindex(40, 4):
            quality = s + rng.normal()
            rated = f"{quality:.3f}", f"{quality + rng.normal():.3f}", 1 - 0.8 * (d % 2)
            if d > 11:
                rated = "", rated[1], ""
            writer.writerow([f"{d}.{s}", f"d{d}", f"s{s}", f"Answer {d} {s}", *rated])
    words = (path, "--human", "rating", "--judge", "gpt", "--json")
    (told,) = cli("check", *words, "--level", "system").told["systems"]
    alone = cli("estimate", *words).told["systems"]
    assert told["systems"]["s1"]["mean"] == alone["s1"]["mean"]
