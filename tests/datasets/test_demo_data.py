"""The demonstration data keep the promises of their card."""

import json
from collections import Counter
from importlib.resources import files

from scipy.stats import pearsonr, spearmanr

DEMO = files("judgesmith.datasets.demo")


def read(name):
    return [
        json.loads(line)
        for line in DEMO.joinpath(name).read_text(encoding="utf-8").splitlines()
    ]


LABELS = read("labels.jsonl")
NEW = read("new_outputs.jsonl")
SCORES = [row["score"] for row in LABELS]
RATERS = list(zip(*(row["ratings"] for row in LABELS), strict=True))


def test_rows_have_exactly_these_fields_and_the_mean_of_two_ratings():
    assert {tuple(row) for row in LABELS} == {
        ("id", "doc_id", "system", "source", "output", "ratings", "score")
    }
    assert {tuple(row) for row in NEW} == {("id", "source", "output")}
    assert set(Counter(row["doc_id"] for row in LABELS).values()) == {2}
    for row in LABELS:
        assert len(row["ratings"]) == 2
        assert row["score"] == sum(row["ratings"]) / 2
        assert all(
            type(rating) is int and 1 <= rating <= 5 for rating in row["ratings"]
        )


def share_kept(row):
    source, output = (
        set(row[name].lower().replace(".", "").split()) for name in ("source", "output")
    )
    return len(source & output) / len(source)


def test_card_states_the_numbers_of_the_data():
    card = DEMO.joinpath("CARD.md").read_text(encoding="utf-8")
    histogram = ", ".join(
        f"{score}: {count}" for score, count in sorted(Counter(SCORES).items())
    )
    assert histogram in card
    for system in ("writer-A", "writer-B"):
        mean = sum(row["score"] for row in LABELS if row["system"] == system) / 24
        assert f"{system} {mean:.2f}" in card
    assert f"Pearson {pearsonr(*RATERS).statistic:.2f}" in card
    apart = Counter(abs(first - second) for first, second in zip(*RATERS, strict=True))
    assert f"equal in {apart[0]} rows, 1 apart in {apart[1]} |" in card
    kept = spearmanr([share_kept(row) for row in LABELS], SCORES).statistic
    length = spearmanr([len(row["output"]) for row in LABELS], SCORES).statistic
    flat = " ".join(card.split())
    assert (
        f"an output keeps has Spearman {kept:.2f} with the score, its length {length:.2f}"
        in flat
    )
    words = [len(row["source"].split()) for row in LABELS]
    assert f"{min(words)}–{max(words)} words" in card
