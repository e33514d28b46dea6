"""What a judge was started from, and rows that are to be forgotten."""

import json
from pathlib import Path
from typing import Any

import judgesmith as js
from judgesmith.optimizers.seen import Seen
from judgesmith.programs.artifact import fingerprint

PLAIN = ("--method", "direct")


def test_a_judge_names_what_it_was_started_from(
    compile_: Any, cli: Any, server: Any, rows_file: Any, tmp_path: Path
) -> None:
    server.answer = lambda ask: f"Score: {len(ask.last) % 60}"
    assert compile_(rows_file(40), *PLAIN).code == 0
    judge = tmp_path / "made.json"
    first, started = js.load(judge, lm="openai/fake"), ("--start", judge)
    assert "lineage" not in first.provenance
    for n, prefix in enumerate(("second ", "third "), 1):
        assert compile_(rows_file(40, f"{n}.jsonl", prefix=prefix), *started).code == 0
    read = js.load(judge)
    oldest, parent = read.provenance["lineage"]
    assert oldest["judge"] == fingerprint(first) and oldest["labels"] == first.provenance["labels"]["fingerprint"]
    assert (parent["rows"], parent["judge"] != oldest["judge"]) == (40, True)
    assert all(Seen(read.provenance)._keys >= Seen(one.provenance)._keys for one in (first, read))
    told = cli("show", judge).said
    assert told.index(parent["judge"]) < told.index(oldest["judge"]) and "40 labels" in told
    saved = json.loads(judge.read_text())
    del saved["provenance"]["lineage"]
    judge.write_text(json.dumps(saved))
    assert fingerprint(js.load(judge)) == fingerprint(read)


def test_a_row_is_forgotten(compile_: Any, server: Any, rows_file: Any, tmp_path: Path) -> None:
    server.answer = lambda ask: f"Score: {len(ask.last) % 60}"
    rows, judge = rows_file(20), tmp_path / "made.json"
    compile_(rows, *PLAIN, "--forget", "r099").refused("--forget r099: rows.jsonl has no label with this id")
    told = compile_(rows, *PLAIN, "--forget", "r003", "--forget", "r004", "--dry-run", "--json").told
    assert (told["outputs"], told["labelled"], told["skipped_rows"][0]["row"]) == (18, 18, 4)
    assert compile_(rows, *PLAIN, "--forget", "r003").code == 0
    row = json.loads(rows.read_text().splitlines()[3])
    assert not Seen(js.load(judge).provenance).knows(row["source"], row["output"])
    start = ("--start", judge)
    compile_(rows, *start, "--forget", "r005").refused("was compiled from r005", "leave --start out to forget it")
    assert compile_(rows, *start, "--forget", "r003").code == 0
    most = (word for n in range(13) for word in ("--forget", f"r{n:03d}"))
    compile_(rows, *PLAIN, *most).refused("fewer than 8 labels are left")
