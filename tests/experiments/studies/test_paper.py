"""A paper's table on a model: the published numbers, what is run, and what stands beside what."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from json_lines import lines, write
from tables import table

from judgesmith import presets
from judgesmith.errors import OptionError
from judgesmith.experiments.studies.papers import table as paper
from judgesmith.experiments.studies.papers.table import PaperTable

#: By table, row and column, as the papers print them.
PUBLISHED = table(__file__, "published")


@pytest.mark.parametrize(("name", "row", "column", "numbers"), PUBLISHED)
def test_the_published_numbers(
    name: str, row: str, column: str, numbers: list[float | None]
) -> None:
    table = paper.read(name)
    assert {**table.rows, **table.beside}[row][column] == numbers


def test_every_table_is_held_to_its_paper_and_says_what_it_is(cli: Any) -> None:
    assert [
        table["name"] for table in cli("study", "paper", "--json").json["tables"]
    ] == paper.names()
    assert all(name in cli("study", "paper").out for name in paper.names())
    assert set(paper.names()) == {name for name, *_ in PUBLISHED}
    assert all(10 < len(paper.about(name)) <= 100 for name in paper.names())


def test_the_means_of_active_critics_table_1() -> None:
    # The paper's last column: the mean of the twelve numbers, .375, .443 and .459
    rows = paper.read("active-critic/table-1").rows
    means = {
        arm: sum(v or 0.0 for values in row.values() for v in values) / 12
        for arm, row in rows.items()
    }
    assert means == pytest.approx(
        {"vanilla": 0.375, "coarse": 0.443, "fine": 0.459}, abs=6e-4
    )


@pytest.mark.parametrize(
    "name", [name for name in paper.names() if paper.read(name).kind == "study"]
)
def test_rows_are_arms_of_the_preset(name: str) -> None:
    table = paper.read(name)
    arms = [
        arm["name"] if isinstance(arm, dict) else arm
        for arm in presets.read(table.preset)["arms"]
    ]
    assert set(table.rows) <= set(arms)
    assert set(table.differs) <= set(arms)
    assert set(table.spread) <= set(arms)
    assert all(
        not column.preset or column.preset in presets.names()
        for column in table.columns.values()
    )


def test_a_wrong_file_is_refused() -> None:
    good: dict[str, Any] = {
        "paper": "P",
        "table": "T",
        "coefficients": ["pearson"],
        "columns": {"A": {"labels": "a"}},
    }
    PaperTable.model_validate(good | {"rows": {"x": {"A": [0.1]}}})
    for rows, told in (
        ({"x": {"B": [0.1]}}, "columns that are not there: B"),
        ({"x": {"A": [0.1, 0.2]}}, "needs 1"),
    ):
        with pytest.raises(ValueError, match=told):
            PaperTable.model_validate(good | {"rows": rows})
    with pytest.raises(
        OptionError, match=r"no such table \(did you mean 'pairwise/table-2'\?\)"
    ):
        paper.read("pairwise/table-22")


# On a model ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def sets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Small sets in the place of the benchmark's: 8 documents of 4 outputs."""
    folder = tmp_path / "data"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name, aspects in (
        ("topical_chat", ("coherence", "overall")),
        ("sfres", ("overall",)),
        ("newsroom", ("coherence", "fluency", "informativeness", "relevance")),
    ):
        rows = [
            {
                "id": f"{d}-{s}",
                "doc_id": str(d),
                "source": f"Source {d}.",
                "output": f"Output {d * s} of {name} {s}.",
                "scores": {a: int(1 + rng.integers(3)) for a in aspects},
            }
            for d in range(8)
            for s in range(4)
        ]
        write(folder / f"{name}.jsonl", rows)
    monkeypatch.setenv("JUDGESMITH_DATA", str(folder))
    return folder


FAST = ("--candidates", "1", "--keep", "1", "--seeds", 1, "--heldout", 0.5)
TWO = ("--column", "SFRES", "--column", "TopicalChat")


def test_our_rows_stand_below_the_published_ones(
    cli: Any, server: Any, fake: Any, sets: Path, tmp_path: Path
) -> None:
    server.answer = fake.judging(lambda ask: len(ask.judged) % 101)
    asked = (
        "study",
        "paper",
        "active-critic/table-1",
        "--lm",
        "openai/fake",
        "--api-base",
        server.base,
        "-o",
        tmp_path / "out",
        *TWO,
        *FAST,
    )
    told = cli(*asked, "--json").told
    assert told["columns"] == ["TopicalChat", "SFRES"]
    rows = [(row["row"], row["ours"]) for row in told["rows"]]
    arms = [
        ("vanilla", False),
        ("vanilla", True),
        ("coarse", False),
        ("coarse", True),
        ("fine", False),
        ("fine", True),
    ]
    assert rows == [
        *arms,
        *(
            (name, False)
            for name in ("Auto-J", "UniEval", "GPTScore-src", "ExplainEval")
        ),
    ]
    published, ours = told["rows"][:2]
    assert published["values"]["SFRES"] == [0.2322, 0.1712, 0.1328]
    assert ours["model"] == "openai/fake"
    assert len(ours["values"]["SFRES"]) == 3
    assert (
        "openai/fake instead of Orca2-13B; 16 held-out rows, 1 seed" in ours["differs"]
    )
    assert any("columns not run: SummEval, OpenMEVA" in note for note in told["notes"])
    records = lines(tmp_path / "out/sfres/results.jsonl")
    assert [r["arm"] for r in records] == ["vanilla", "coarse", "fine"]
    assert ours["values"]["SFRES"][0] == pytest.approx(records[0]["pearson"])
    written = (tmp_path / "out/table.md").read_text(encoding="utf-8")
    assert "| vanilla | ours, openai/fake |" in written
    assert "what differs from the paper" in written

    calls = len(server.asks)
    again = cli(*asked, "--json")  # goes on where it stopped: nothing is left
    assert again.json["rows"] == told["rows"]
    assert len(server.asks) == calls


def test_a_dry_run_spends_nothing(
    cli: Any, server: Any, sets: Path, tmp_path: Path
) -> None:
    told = cli(
        "study",
        "paper",
        "active-critic/table-4",
        *TWO,
        *FAST,
        "--arm",
        "fine+own-criteria",
        "--api-base",
        server.base,
        "-o",
        tmp_path / "out",
        "--dry-run",
        "--json",
    ).told
    assert {plan["column"] for plan in told["columns"]} == {"SFRES", "TopicalChat"}
    assert [line["arm"] for line in told["columns"][0]["lines"]] == [
        "fine+own-criteria"
    ]
    assert told["calls"] == sum(plan["calls"] for plan in told["columns"])
    assert not server.asks
    assert not (tmp_path / "out").exists()


def test_one_model_annotates_alone_unless_others_are_named(
    cli: Any, sets: Path
) -> None:
    asked = (
        "study",
        "paper",
        "openlgauge/table-13",
        "--column",
        "coherence",
        "--lm",
        "openai/fake",
        "--train",
        "4",
        "--dry-run",
        "--json",
    )
    alone = cli(*asked).told
    several = cli(*asked, "--annotator", "openai/a", "--annotator", "openai/b")
    # One call a row, against two annotators and the supervisor; held-out rows are not in the budget of fitting.
    assert alone["columns"][0]["calls"] < several.json["columns"][0]["calls"]


def test_aspects_against_each_other_need_no_model(
    cli: Any, sets: Path, tmp_path: Path
) -> None:
    told = cli(
        "study", "paper", "pairwise/table-6", "-o", tmp_path / "out", "--json"
    ).told
    ours = {row["row"]: row["values"] for row in told["rows"] if row["ours"]}
    for one, values in ours.items():
        assert values[one] == [pytest.approx(1.0)]
        for other in ours:
            assert values[other] == [pytest.approx(ours[other][one][0])]
            assert math.isfinite(values[other][0])


def annotation(ask: Any) -> str:
    """Good or Poor by the letters of the output; an error in the first word."""
    if ask.step == "probe":
        return "4"
    label = "Good" if sum(map(ord, ask.judged)) % 2 else "Poor"
    return f"Error 1\nLocation: Output\nExplanation: It is wrong.\nSeverity: 3\n\nOverall: {label}\nReason: So it is."


def test_subsets_come_from_what_each_annotator_said(
    cli: Any, server: Any, sets: Path, tmp_path: Path
) -> None:
    server.answer = annotation
    asked = (
        "study",
        "paper",
        "openlgauge/figure-8",
        "--column",
        "coherence",
        "--lm",
        "openai/fake",
        "--annotator",
        "openai/fake",
        "--annotator",
        "openai/fake@0.7",
        "--api-base",
        server.base,
        "--rows",
        12,
        "-o",
        tmp_path / "out",
    )
    plan = cli(*asked, "--dry-run", "--json")
    assert (plan.code, plan.json["calls"], server.asks) == (0, 24, [])  # no supervisor
    told = cli(*asked, "--json").told
    ours = {
        row["row"]: row["values"]["coherence"][0] for row in told["rows"] if row["ours"]
    }
    names = ["openai/fake", "openai/fake@0.7"]
    assert list(ours) == [*names, "mean of the 2 subsets of 1", " + ".join(names)]
    assert len(set(ours.values())) == 1
    assert None not in ours.values()
    assert {row["row"] for row in told["rows"] if not row["ours"]} >= {
        "Gemma 2 27B",
        "all five annotators",
    }
    calls = len(server.asks)
    assert cli(*asked, "--json").json["rows"] == told["rows"]
    assert len(server.asks) == calls


def test_spans_are_held_against_those_of_people(
    cli: Any, server: Any, sets: Path, tmp_path: Path
) -> None:
    server.answer = annotation
    rows, marked = [], []
    for n in range(
        8
    ):  # people marked the first word in half of the texts, the last one in the others
        rows.append(
            {
                "id": f"r{n}",
                "source": "A box score.",
                "output": f"Output {n} is fine.",
                "doc_id": f"r{n}",
                "scores": {"accuracy": -float(n % 3)},
            }
        )
        marked.append(
            {
                "id": f"r{n}",
                "errors": [
                    {"start": 0, "end": 6} if n % 2 else {"start": 12, "end": 16}
                ],
            }
        )
    write(sets / "rotowire_accuracy.jsonl", rows)
    write(sets / "rotowire_accuracy.spans.jsonl", marked)
    told = cli(
        "study",
        "paper",
        "openlgauge/table-4",
        "--lm",
        "openai/fake",
        "--api-base",
        server.base,
        "-o",
        tmp_path / "out",
        "--json",
    ).told
    (ours,) = [row for row in told["rows"] if row["ours"]]
    touching, precision, recall, f1 = ours["values"]["RotoWire"]
    # 4 of 8 marks touch; 6 of 12 characters a pair of texts are right, of 6 + 4 that people marked 6 are found
    assert (touching, precision, recall) == pytest.approx((0.5, 0.5, 0.6))
    assert f1 == pytest.approx(2 * 0.5 * 0.6 / 1.1)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["active-critic/table-1", "--rows", "8"], "give --train and --heldout"),
        (["active-critic/table-9"], "there is no such table (did you mean"),
        (
            ["active-critic/table-1", "--column", "CNN"],
            "has SummEval, TopicalChat, SFRES, OpenMEVA",
        ),
        (
            ["active-critic/table-1", "--arm", "magic"],
            "the rows are vanilla, coarse, fine",
        ),
        (["active-critic/table-1", "--annotator", "a/b"], "has no ensemble"),
        (
            ["active-critic/table-1", "--column", "SFRES"],
            "no language model: give --lm",
        ),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    arguments: list[str], told: str, cli: Any, sets: Path, tmp_path: Path
) -> None:
    done = cli("study", "paper", *arguments, "-o", tmp_path / "out")
    assert (done.code, len(done.err.splitlines())) == (2, 1), done.err
    assert told in done.err
