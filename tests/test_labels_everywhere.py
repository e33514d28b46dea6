"""Every command reads a file of labels as `compile` does: the table of files by commands, green in every cell."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from json_lines import write

from judgesmith.datasets.loading import iter_rows, read_compared, read_labels
from judgesmith.datasets.records import Labels
from judgesmith.errors import LabelsError
from judgesmith.evaluating.few import read_few, read_suggestable
from judgesmith.evaluating.judges import Selection, read_judged
from judgesmith.reports.rows import read_scored
from judgesmith.rooms.discerning.pairs import read_texts
from judgesmith.rooms.labelling.units import read_units

FOLDER = Path(__file__).parent / "datasets" / "awkward"
EXPECTED: dict[str, dict[str, Any]] = json.loads(
    (FOLDER / "expected.json").read_text(encoding="utf-8")
)
READ = [
    name
    for name, case in EXPECTED.items()
    if "expect" in case and "categories" not in case
]


def compiled(name: str) -> Labels:
    return read_labels(FOLDER / name, columns=EXPECTED[name].get("columns"))


def scored(name: str, path: Path) -> Path:
    """The file as `judgesmith score` writes it, by a judge that counts characters."""

    def verdict(text: str) -> dict[str, Any]:
        return {
            "score": len(text) / 40,
            "explanation": "",
            "failure": None,
            "repaired": False,
        }

    columns = EXPECTED[name].get("columns")
    if (pairs := read_compared(FOLDER / name, columns)) is not None:
        rows = [
            {
                **record,
                "id": pair.id,
                "verdict": verdict("")
                | {
                    "details": {
                        "a": verdict(pair.a.output),
                        "b": verdict(pair.b.output),
                    }
                },
            }
            for pair, record in pairs
        ]
    else:
        rows = [
            {**record, "id": row.id, "verdict": verdict(row.output)}
            for row, record in iter_rows(FOLDER / name, columns=columns)
        ]
    return write(path, json.loads(json.dumps(rows, default=str)))


Ratings = dict[tuple[str, str], float]
every_file = pytest.mark.parametrize("name", READ)


def columns_of(name: str) -> dict[str, Any]:
    columns: dict[str, Any] = EXPECTED[name].get("columns") or {}
    return columns


def rated(labels: Labels) -> Ratings:
    """The human rating of each text, as `compile` reads them."""
    return {(r.source, r.output): r.scores[labels.aspect] for r in labels.rows}


def raters(labels: Labels) -> int:
    """The most ratings of one text; of comparisons there is one each."""
    if labels.kind == "preference":
        return 0
    return max(len(row.ratings.get(labels.aspect, ())) for row in labels.rows)


def defined(rows: Iterable[Any], values: Iterable[float]) -> Ratings:
    """The value of each text, without those that are not defined."""
    pairs = zip(rows, values, strict=True)
    return {(r.source, r.output): v for r, v in pairs if not math.isnan(v)}


@every_file
def test_evaluate_reads_ratings_as_compile_does(name: str, tmp_path: Path) -> None:
    labels = compiled(name)
    verdicts = scored(name, tmp_path / "set.scored.jsonl")
    data = read_judged([str(verdicts)], Selection(columns=columns_of(name)))
    assert defined(data.rows, data.human[labels.aspect]) == pytest.approx(rated(labels))


@every_file
def test_evaluate_reads_kind_scale_and_raters_as_compile_does(
    name: str, tmp_path: Path
) -> None:
    labels, people = compiled(name), raters(compiled(name))
    verdicts = scored(name, tmp_path / "set.scored.jsonl")
    data = read_judged([str(verdicts)], Selection(columns=columns_of(name)))
    assert data.kinds.get(labels.aspect, "score") == labels.kind
    assert data.scales[labels.aspect] == labels.scale
    if people > 1:
        assert data.ratings[labels.aspect].shape[1] == people
    else:
        assert labels.aspect not in data.ratings
    assert not np.isnan(next(iter(data.judges["set"].values()))).all()


@every_file
def test_report_reads_ratings_as_compile_does(name: str, tmp_path: Path) -> None:
    labels = compiled(name)
    verdicts = scored(name, tmp_path / "set.scored.jsonl")
    found: dict[tuple[str, str], list[float]] = {}
    for one in read_scored(verdicts, columns=columns_of(name)).rows:
        if labels.aspect not in one.human:
            continue
        sides = [(one.row, one.human[labels.aspect])]
        if one.other is not None:  # a row is a pair; its texts stand in several
            if one.row.output == one.other.output:
                continue
            sides.append((one.other, 1 - one.human[labels.aspect]))
        for row, value in sides:
            found.setdefault((row.source, row.output), []).append(value)
    means = {key: float(np.mean(values)) for key, values in found.items()}
    assert means == pytest.approx(rated(labels))


@every_file
@pytest.mark.parametrize("separate", [False, True], ids=["own column", "--human FILE"])
def test_estimate_reads_ratings_as_compile_does(
    name: str, separate: bool, tmp_path: Path
) -> None:
    labels = compiled(name)
    verdicts = scored(name, tmp_path / "set.scored.jsonl")
    data = read_few(
        str(verdicts),
        human=[str(FOLDER / name)] if separate else [],
        columns=columns_of(name),
        aspect=labels.aspect,
    )
    assert defined(data.rows, data.human) == pytest.approx(rated(labels))


@every_file
def test_suggest_reads_ratings_as_compile_does(name: str) -> None:
    labels = compiled(name)
    data, _ = read_suggestable(
        str(FOLDER / name), columns=columns_of(name), aspect=labels.aspect
    )
    assert defined(data.rows, data.human) == pytest.approx(rated(labels))


def texts_of(file: Path, columns: dict[str, Any]) -> set[str | None]:
    """Every text of a file that can be judged, references included."""
    found: set[str | None] = set()
    pairs = read_compared(file, columns)
    if pairs is not None:
        for pair, _ in pairs:
            found |= {pair.a.output, pair.b.output}
        return found
    for row, _ in iter_rows(file, columns=columns):
        found |= {row.output, row.reference}
    return found


@every_file
def test_discern_reads_texts_of_the_file(name: str) -> None:
    good = read_texts(str(FOLDER / name), columns=columns_of(name)).texts
    known = texts_of(FOLDER / name, columns_of(name))
    texts = {text.text for text in good}
    assert texts - known == set()
    outputs = {row.output for row in compiled(name).rows}
    assert texts & outputs


@every_file
def test_label_shows_every_text_of_the_file(name: str) -> None:
    labels = compiled(name)
    kind: Any = "preference" if labels.kind == "preference" else "score"
    units = read_units(str(FOLDER / name), kind, columns_of(name)).units
    shown = set()
    for unit in units:
        shown |= {unit.row[key] for key in unit.row if key.startswith("output")}
    assert {row.output for row in labels.rows} - shown == set()


@every_file
def test_score_writes_every_text_of_the_file(name: str, tmp_path: Path) -> None:
    verdicts = scored(name, tmp_path / "set.scored.jsonl")
    written = texts_of(verdicts, columns_of(name))
    assert {row.output for row in compiled(name).rows} - written == set()


def test_two_raters_are_one_output_with_two_ratings(tmp_path: Path) -> None:
    long = [
        {
            "text": f"It is answer {n // 2} to the question that she put, {n}.",
            "annotator": who,
            "rating": 1 + (n + k) % 5,
            "verdict": {"score": n % 5 + 1.0},
        }
        for n in range(60)
        for k, who in enumerate(("Anna", "Bob"))
    ]
    path = write(tmp_path / "long.jsonl", long)
    data = read_judged([str(path)], Selection())
    assert (len(data.rows), data.ratings["overall"].shape) == (60, (60, 2))
    assert (
        len(set(data.documents)) == len(set(read_labels(path).groups)) < 60
    )  # near duplicates are one document


def test_a_slip_of_the_keyboard_is_no_scale(tmp_path: Path) -> None:
    rows = [
        {"output": f"text {n}", "score": 1 + n % 5, "verdict": {"score": 3.0 + n % 2}}
        for n in range(40)
    ]
    rows[16]["score"] = 55
    path = write(tmp_path / "rows.jsonl", rows)
    for read in (read_labels, lambda path: read_judged([str(path)], Selection())):
        with pytest.raises(
            LabelsError,
            match="row 17, column 'score': 55 is far from all other ratings",
        ):
            read(path)
    assert read_labels(path, scale=(0, 100)).scale == (0, 100)
    assert read_judged([str(path)], Selection(scale=(0, 100))).scales == {
        "overall": (0, 100)
    }


def test_people_in_columns_of_their_names(cli: Any, tmp_path: Path) -> None:
    rows = [
        {"text": f"Answer {n}", "Anna": 1 + n % 5, "Bob": 1 + n % 4} for n in range(12)
    ]
    path, both = (
        write(tmp_path / "rows.jsonl", rows),
        ("--columns", "rater_score=Anna", "--columns", "rater_score=Bob"),
    )
    told = cli("compile", path, *both, "--dry-run", "--json").told
    assert (told["raters"], told["outputs"], told["columns"]["score"]) == (
        2,
        12,
        "Anna, Bob",
    )
    cli(
        "compile",
        path,
        "--columns",
        "score=Anna",
        "--columns",
        "score=Bob",
        "--dry-run",
    ).refused(
        "score is given twice, 'Anna' and 'Bob'",
        "--columns rater_score=Anna --columns rater_score=Bob",
    )


def test_few_ratings_are_joined_by_id_without_their_texts(
    cli: Any, tmp_path: Path
) -> None:
    every = [
        {"id": f"r{n}", "output": f"Answer {n}", "verdict": {"score": n % 5 + 1.0}}
        for n in range(40)
    ]
    few = [{"id": f"r{n}", "human": n % 5 + 1} for n in range(0, 40, 4)]
    scored, human = (
        write(tmp_path / "scored.jsonl", every),
        write(tmp_path / "few.jsonl", few),
    )
    (system,) = (
        cli("estimate", scored, "--human", human, "--json").told["systems"].values()
    )
    assert (system["n_human"], system["n_judge"]) == (10, 40)
