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
    server.answer, judge = (
        lambda ask: f"Score: {len(ask.last) % 60}",
        tmp_path / "made.json",
    )
    assert compile_(rows_file(16), *PLAIN).code == 0
    first = js.load(judge, lm="openai/fake")
    assert (
        compile_(rows_file(16, "more.jsonl", prefix="second "), "--start", judge).code
        == 0
    )
    read, told = js.load(judge), cli("show", judge).said
    (parent,) = read.provenance["lineage"]
    assert parent["judge"] == fingerprint(first)
    assert parent["labels"] == first.provenance["labels"]["fingerprint"]
    assert set(first.provenance["seen"]) < set(read.provenance["seen"])
    assert parent["judge"] in told
    assert "16 labels" in told
    compile_(rows_file(16), "--start", judge, "--forget", "r005").refused(
        "was compiled from r005", "leave --start out"
    )
    compile_(rows_file(16), "--start", judge, "--as", "general/fluency").refused(
        "--start has a judge's own task and criteria; leave --as out"
    )
    saved = json.loads(judge.read_text())
    del saved["provenance"]["lineage"]
    judge.write_text(json.dumps(saved))
    assert fingerprint(js.load(judge)) == fingerprint(read)


def test_a_row_is_forgotten(
    compile_: Any, server: Any, rows_file: Any, tmp_path: Path
) -> None:
    server.answer, rows = lambda ask: f"Score: {len(ask.last) % 60}", rows_file(16)
    compile_(rows, *PLAIN, "--forget", "r099").refused(
        "--forget r099: rows.jsonl has no label with this id"
    )
    told = compile_(
        rows, *PLAIN, "--forget", "r003", "--forget", "r004", "--dry-run", "--json"
    ).told
    assert (told["outputs"], told["labelled"], told["skipped_rows"][0]["row"]) == (
        14,
        14,
        4,
    )
    assert compile_(rows, *PLAIN, "--forget", "r003").code == 0
    row = json.loads(rows.read_text().splitlines()[3])
    assert not Seen(js.load(tmp_path / "made.json").provenance).knows(
        row["source"], row["output"]
    )
    most = (word for n in range(9) for word in ("--forget", f"r{n:03d}"))
    compile_(rows, *PLAIN, *most).refused("fewer than 8 labels are left")
