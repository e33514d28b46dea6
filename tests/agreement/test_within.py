"""Agreement within systems: the definition by hand, its resamples, published judges, and what systems alone reach."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from judgesmith.agreement import resampling
from judgesmith.agreement.correlation import CorrelationSum, correlate
from judgesmith.agreement.meta.evaluation import meta_evaluate, rows_of
from judgesmith.agreement.resampling import Measure, WithinSystems, bootstrap_q
from judgesmith.agreement.significance import permutation_test
from judgesmith.errors import OptionError

PARTS = ["pearson", "spearman", "kendall"]
DATA = os.environ.get("JUDGESMITH_DATA")


def within(x: Any, y: Any, systems: Any, coefficient: Any = "sum") -> float:
    return correlate(
        x, y, coefficient=coefficient, level="within", systems=systems
    ).value


def example(seed: int, documents: int = 8, systems: int = 4) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    doc, sys_ = (codes.ravel() for codes in np.indices((documents, systems)))
    human = np.round(sys_ + rng.normal(size=len(doc)))
    return np.round(human + rng.normal(size=len(doc)), 1), human, doc, sys_


# The definition ------------------------------------------------------------------------------------------------------


def test_the_three_parts_by_hand() -> None:
    # Two systems of three rows. Scores less their system's mean: -1 0 1 and 1 -1 0; people's: -1 1 0 and 1 -1 0.
    # r: (1 + 0 + 0 + 1 + 1 + 0) / sqrt(4 · 4) = 3/4.
    # Pooled ranks of the judge: 1 2 3 6 4 5, of people: 1 3 2 6 4 5, less the means 2 and 5: as above, 3/4.
    # tau-b, pairs of one system: 2 concordant and 1 discordant of the first, 3 concordant of the second: (5 - 1) / 6.
    judge, human, systems = (
        [1, 2, 3, 12, 10, 11],
        [1, 3, 2, 9, 7, 8],
        [0, 0, 0, 1, 1, 1],
    )
    assert [within(judge, human, systems, name) for name in PARTS] == pytest.approx(
        [3 / 4, 3 / 4, 4 / 6]
    )
    assert within(judge, human, systems) == pytest.approx(3 / 4 + 3 / 4 + 4 / 6)
    assert (
        correlate(judge, human, coefficient="sum", level="pooled").value > 2.6
    )  # since it knows the systems


def test_pairs_inside_systems_as_they_are_counted_one_by_one() -> None:
    x, y, _, sys_ = example(1)
    inside = [(i, j) for i in range(len(x)) for j in range(i) if sys_[i] == sys_[j]]
    ours, theirs = (
        np.array([np.sign(side[i] - side[j]) for i, j in inside]) for side in (x, y)
    )
    expected = (ours * theirs).sum() / math.sqrt(
        (ours != 0).sum() * (theirs != 0).sum()
    )
    assert within(x, y, sys_, "kendall") == pytest.approx(expected)
    ranks = [stats.rankdata(side) for side in (x, y)]
    centred = [side - [side[sys_ == s].mean() for s in sys_] for side in ranks]
    assert within(x, y, sys_, "spearman") == pytest.approx(
        stats.pearsonr(*centred).statistic
    )


def test_what_tells_systems_apart_counts_for_nothing() -> None:
    x, y, _, sys_ = example(2)
    for name in ("pearson", "kendall"):
        assert within(x + 10 * sys_, y, sys_, name) == pytest.approx(
            within(x, y, sys_, name)
        )
    of_system = np.array([3.0, 1.0, 2.0, 5.0])[sys_]
    found = correlate(of_system, y, coefficient="sum", level="within", systems=sys_)
    assert math.isnan(found.value)
    assert "constant inside every system" in str(found.reason)
    one = correlate(x, y, coefficient="sum", level="within", systems=np.zeros(len(x)))
    assert one.value == pytest.approx(
        correlate(x, y, coefficient="sum", level="pooled").value
    )


def test_a_failed_row_is_imputed_with_its_system() -> None:
    x, y, doc, sys_ = example(3)
    x[5] = np.nan
    filled = x.copy()
    filled[5] = np.nanmean(x[sys_ == sys_[5]])
    found = CorrelationSum("within")(x, y, doc, sys_)
    assert found.failed == 1
    assert found.q == pytest.approx(CorrelationSum("within")(filled, y, doc, sys_).q)
    drawn = bootstrap_q(
        x, Measure(y, documents=doc, systems=sys_, level="within"), rounds=20
    )
    assert drawn.value == pytest.approx(found.q)


@pytest.mark.parametrize("most", [3000, 2])  # sign matrices, and rows written out
def test_resamples_are_the_rows_written_out(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resampling, "PAIRS_AT_ONCE", most)
    for seed in range(5):
        x, y, doc, sys_ = example(seed)
        counts = (
            np.random.default_rng(seed)
            .multinomial(8, [1 / 8] * 8, size=4)
            .astype(float)
        )
        names = [*PARTS, "somers"]
        values = WithinSystems(x, y, doc, sys_, names)(counts)
        for value, count in zip(values, counts, strict=True):
            rows = np.repeat(np.arange(len(x)), count[doc].astype(int))
            assert value == pytest.approx(
                [within(x[rows], y[rows], sys_[rows], name) for name in names]
            )


def test_it_needs_systems_and_has_no_permutation_test() -> None:
    x, y, doc, sys_ = example(4)
    with pytest.raises(OptionError, match="pass systems="):
        correlate(x, y, level="within")
    with pytest.raises(OptionError, match="no permutation test"):
        permutation_test(x, y, Measure(y, documents=doc, systems=sys_, level="within"))
    with pytest.raises(OptionError, match="the rows name 1 system; use level pooled"):
        meta_evaluate(
            {"j": x}, y, documents=doc, systems=np.zeros(len(x)), levels=["within"]
        )


# Intervals -----------------------------------------------------------------------------------------------------------


def test_intervals_hold_the_value_of_other_documents_and_of_other_systems() -> None:
    """8 systems; the judge reads some systems better than others. True values from 2,000 documents and systems."""

    def draw(
        rng: Any, documents: int, systems: int, gain: Any = None
    ) -> tuple[Any, ...]:
        gain = rng.uniform(0.1, 0.9, systems) if gain is None else gain
        doc, sys_ = (codes.ravel() for codes in np.indices((documents, systems)))
        human = rng.normal(size=systems)[sys_] + rng.normal(size=len(doc))
        judge = (
            rng.normal(size=systems)[sys_]
            + gain[sys_] * human
            + rng.normal(size=len(doc)) * 0.7
        )
        return judge, human, doc, sys_, gain

    judge, human, _, sys_, _ = draw(np.random.default_rng(0), 100, 1500)
    at_large, held = within(judge, human, sys_, "pearson"), []
    for seed in range(60):
        rng = np.random.default_rng([seed, 3])
        judge, human, doc, sys_, gain = draw(rng, 30, 8)
        more, people, _, same, _ = draw(rng, 1500, 8, gain)
        here = within(more, people, same, "pearson")
        cells = []
        for wide in (False, True):
            options: Any = {
                "levels": ["within"],
                "coefficients": ["pearson"],
                "rounds": 100,
                "new_systems": wide,
            }
            found = meta_evaluate(
                {"j": judge}, human, documents=doc, systems=sys_, **options
            )
            cells.append(found.cell("j", "overall", "within", "pearson"))
        inside = [
            cell["low"] <= truth <= cell["high"]
            for cell, truth in zip(cells, (here, at_large), strict=True)
        ]
        held.append([*inside, cells[0]["low"] <= at_large <= cells[0]["high"]])
    documents, systems, narrow = np.mean(held, axis=0)
    assert documents >= 0.88
    assert systems >= 0.9 > narrow


# Published judges ----------------------------------------------------------------------------------------------------

#: Q over all rows and within systems: (set, scores, system left out, rows as these scores have them, values by aspect).
PUBLISHED = [
    (
        "summeval",
        "gpt-4-0314.rts.{aspect}",
        None,
        {
            "coherence": (1.25, 1.02),
            "consistency": (1.70, 1.21),
            "fluency": (1.55, 1.09),
            "relevance": (1.25, 1.01),
        },
    ),
    (
        "summeval",
        "gpt-3.5-turbo-0301.rts.{aspect}",
        None,
        {
            "coherence": (1.26, 1.00),
            "consistency": (1.33, 0.78),
            "fluency": (0.83, 0.46),
            "relevance": (1.27, 1.01),
        },
    ),
    (
        "summeval",
        "bart_score_cnn_src_hypo",
        None,
        {
            "coherence": (1.33, 0.89),
            "consistency": (1.04, 0.72),
            "fluency": (0.88, 0.55),
            "relevance": (1.20, 0.92),
        },
    ),
    (
        "topical_chat",
        "unieval_{aspect}",
        None,
        {
            "naturalness": (1.29, 0.89),
            "coherence": (1.77, 1.42),
            "engagingness": (1.74, 1.00),
            "groundedness": (1.52, 1.26),
            "understandability": (1.20, 0.77),
            "overall": (1.92, 1.15),
        },
    ),
    (
        "hanna",
        "ChatGPT.p1.{aspect}",
        "Human",
        {
            "relevance": (0.40, 0.40),
            "coherence": (0.70, 0.45),
            "empathy": (0.55, 0.44),
            "surprise": (0.11, 0.05),
            "engagement": (0.63, 0.37),
            "complexity": (0.91, 0.60),
        },
    ),
]


def lines(name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in Path(str(DATA), name).read_text(encoding="utf-8").splitlines()
    ]


@pytest.mark.skipif(
    not DATA, reason="JUDGESMITH_DATA is unset: the folder of published scores"
)
@pytest.mark.parametrize(("name", "column", "without", "values"), PUBLISHED)
def test_published_judges_within_systems(
    name: str, column: str, without: str | None, values: Any
) -> None:
    metrics = {line["id"]: line["metrics"] for line in lines(f"{name}.metrics.jsonl")}
    everywhere = {"summeval": "gpt-4-0314.rts.coherence"}.get(
        name
    )  # BARTScore on the rows that GPT-4 read
    rows = [row for row in lines(f"{name}.jsonl") if row["system"] != without]
    rows = [
        row for row in rows if everywhere is None or everywhere in metrics[row["id"]]
    ]
    for aspect, expected in values.items():
        judge = [metrics[row["id"]][column.format(aspect=aspect)] for row in rows]
        human, systems = (
            [row["scores"][aspect] for row in rows],
            [row["system"] for row in rows],
        )
        found = [
            correlate(judge, human, coefficient="sum", level="pooled").value,
            within(judge, human, systems),
        ]
        assert found == pytest.approx(expected, abs=0.0061), aspect


# What systems alone reach --------------------------------------------------------------------------------------------


def test_the_mean_labels_of_systems_are_a_baseline_and_what_does_not_beat_it_is_named() -> (
    None
):
    rng = np.random.default_rng(0)
    doc, sys_ = (codes.ravel() for codes in np.indices((40, 5)))
    human = 2.0 * sys_ + rng.normal(size=len(doc))
    judges = {
        "only systems": sys_ + 0.6 * rng.normal(size=len(doc)),
        "reads": human + 0.3 * rng.normal(size=len(doc)),
    }
    found = meta_evaluate(judges, human, documents=doc, systems=sys_, rounds=50)
    rows = {(row["level"], row["coefficient"]): row for row in rows_of(found.by_system)}
    assert set(rows) == {
        (level, name) for level in ("pooled", "sample") for name in PARTS
    }
    part, values = np.random.default_rng(0).permutation(40)[doc] % 4, []
    for k in range(4):  # means of three parts of the documents, agreement on the fourth
        there = {s: human[(sys_ == s) & (part != k)].mean() for s in range(5)}
        means = [there[s] for s in sys_[part == k]]
        values.append(stats.spearmanr(means, human[part == k]).statistic)
    assert rows["pooled", "spearman"]["value"] == pytest.approx(np.mean(values))
    (note,) = (
        note for note in found.notes if "the mean labels of the systems alone" in note
    )
    assert note.startswith("only systems agrees no better")
    assert "reads" not in note.split("agrees")[0]
    assert (
        abs(found.cell("only systems", "overall", "within", "spearman")["value"]) < 0.3
    )
    assert found.cell("reads", "overall", "within", "spearman")["value"] > 0.8
    assert found.to_dict()["by_system"][0]["aspect"] == "overall"


def test_one_row_a_system_has_neither() -> None:
    human = np.random.default_rng(1).normal(size=8)
    found = meta_evaluate({"j": human + 0.1}, human, systems=range(8), rounds=0)
    assert "within" not in found.settings["levels"]
    assert not any(v == v for v in found.by_system["value"])


@pytest.mark.parametrize(("systems", "documents"), [(2, 20), (3, 12), (4, 20)])
def test_the_mean_labels_of_equal_systems_say_nothing(
    systems: int, documents: int
) -> None:
    found = []
    for seed in range(60):
        rng = np.random.default_rng([seed, systems])
        passed = (rng.random((systems, documents)) < 0.7).astype(float).ravel()
        doc = np.tile(np.arange(documents), systems)
        result = meta_evaluate(
            {"j": rng.normal(size=len(doc))},
            passed,
            documents=doc,
            systems=np.repeat(np.arange(systems), documents),
            coefficients=("pearson",),
            levels=("pooled",),
            rounds=0,
            seed=seed,
        )
        found.append(result.by_system["value"][0])
    assert abs(np.nanmean(found)) < 0.12  # -.45 for two, by means that leave a row out
