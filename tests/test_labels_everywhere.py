"""Every command reads a file of labels as `compile` does: the table of files by commands, green in every cell."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from json_lines import write

from judgesmith.datasets import Labels, iter_rows, read_labels
from judgesmith.datasets.loading import read_compared
from judgesmith.discerning.pairs import read_texts
from judgesmith.errors import LabelsError
from judgesmith.evaluating.judges import Wanted, read_judged
from judgesmith.labelling.few import read_known, read_suggestable
from judgesmith.labelling.units import read_units
from judgesmith.reports.rows import read_scored

FOLDER = Path(__file__).parent / "datasets" / "awkward"
EXPECTED: dict[str, dict[str, Any]] = json.loads(
    (FOLDER / "expected.json").read_text(encoding="utf-8")
)
READ = [
    name
    for name, case in EXPECTED.items()
    if "expect" in case and "categories" not in case
]
COMMANDS = (
    "score",
    "evaluate",
    "report",
    "estimate",
    "estimate --human FILE",
    "suggest",
    "discern",
    "label",
)


def compiled(name: str) -> Labels:
    if name.endswith(".xlsx"):
        pytest.importorskip("python_calamine")
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


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", READ)
def test_people_are_understood_alike(name: str, command: str, tmp_path: Path) -> None:
    labels, columns, file = (
        compiled(name),
        EXPECTED[name].get("columns"),
        str(FOLDER / name),
    )
    aspect, texts = labels.aspect, {row.output for row in labels.rows}
    human = {(row.source, row.output): row.scores[aspect] for row in labels.rows}
    raters = (
        max(len(row.ratings.get(aspect, ())) for row in labels.rows)
        if labels.kind != "preference"
        else 0
    )
    verdicts = scored(name, tmp_path / "set.scored.jsonl")
    found: dict[tuple[str, str], float] = {}
    if command == "evaluate":
        data = read_judged([str(verdicts)], Wanted(columns=columns))
        found = {
            (r.source, r.output): v
            for r, v in zip(data.rows, data.human[aspect], strict=True)
            if v == v
        }
        assert (data.kinds.get(aspect, "score"), data.scales[aspect]) == (
            labels.kind,
            labels.scale,
        )
        assert (data.ratings[aspect].shape[1] if aspect in data.ratings else 0) == (
            raters if raters > 1 else 0
        )
        assert not np.isnan(next(iter(data.judges["set"].values()))).all()
    elif command == "report":
        shown = read_scored(verdicts, columns=columns).rows
        if labels.kind == "preference":  # a row is a pair; its texts stand in several
            won: dict[tuple[str, str], list[float]] = {}
            for one in (
                one
                for one in shown
                if one.human and one.other and one.row.output != one.other.output
            ):
                for row, share in (
                    (one.row, one.human[aspect]),
                    (one.other, 1 - one.human[aspect]),
                ):
                    won.setdefault((row.source, row.output), []).append(share)
            found = {key: float(np.mean(shares)) for key, shares in won.items()}
        else:
            found = {
                (one.row.source, one.row.output): one.human[aspect]
                for one in shown
                if aspect in one.human
            }
    elif command.startswith("estimate"):
        few = [file] if command.endswith("FILE") else []
        known = read_known(str(verdicts), human=few, columns=columns, aspect=aspect)
        found = {
            (r.source, r.output): v
            for r, v in zip(known.rows, known.human, strict=True)
            if v == v
        }
    elif command == "suggest":
        known, _ = read_suggestable(file, columns=columns, aspect=aspect)
        found = {
            (r.source, r.output): v
            for r, v in zip(known.rows, known.human, strict=True)
            if v == v
        }
    elif command == "discern":
        assert {text.text for text in read_texts(file, columns=columns).texts} & texts
    elif command == "label":
        kind: Any = "preference" if labels.kind == "preference" else "score"
        units = read_units(file, kind, columns or {}).units
        assert {
            value
            for unit in units
            for key, value in unit.row.items()
            if key.startswith("output")
        } >= texts
    else:
        rows = [
            json.loads(line)
            for line in verdicts.read_text(encoding="utf-8").splitlines()
        ]
        assert len(rows) >= len(labels) / (
            2 if labels.kind == "preference" else max(raters, 1)
        )
    assert found == pytest.approx(human) or command in ("score", "discern", "label")


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
    data = read_judged([str(path)], Wanted())
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
    for read in (read_labels, lambda path: read_judged([str(path)], Wanted())):
        with pytest.raises(
            LabelsError,
            match="row 17, column 'score': 55 is far from all other ratings",
        ):
            read(path)
    assert read_labels(path, scale=(0, 100)).scale == (0, 100)
    assert read_judged([str(path)], Wanted(scale=(0, 100))).scales == {
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
