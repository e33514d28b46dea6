"""`judgesmith diff`: what changed between two judges, and what that does to scores."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.programs import artifact
from judgesmith.programs.outcome import Calibration
from judgesmith.signatures.values import Criterion
from judgesmith.watching.judges import compare_judges
from judgesmith.watching.scores import reversed_pairs

Rows = Callable[..., Path]


@pytest.fixture
def other(judge_file: Path) -> Callable[..., Path]:
    """other(change): a copy of the judge, changed."""

    def make(change: Callable[[Any], Any]) -> Path:
        judge = artifact.build(artifact.read(judge_file))
        change(judge)
        path = judge_file.with_name("other.json")
        data = artifact.to_dict(judge) | {"lm": json.loads(judge_file.read_text())["lm"]}
        path.write_text(json.dumps(data))
        return path

    return make


def test_a_copy_is_the_same_whatever_its_provenance(cli: Any, judge_file: Path, other: Any) -> None:
    found = cli("diff", judge_file, other(lambda j: j.provenance.update(seed=7)), "--json")
    assert found.code == 0
    assert found.json["same"]
    assert found.json["comparable"]["scores"]
    assert found.json["changes"] == [{"part": "provenance", "name": "seed", "a": None, "b": 7}]


DEMO = {"source": "S", "output": "[red]O[/red]", "group": "d", "score": 60.0, "gold": True}
CHANGES: list[tuple[Callable[[Any], Any], str, str, bool, bool]] = [
    (lambda j: setattr(j.knowledge, "description", "Another task."), "task", "prompt", False, False),
    (lambda j: setattr(j.knowledge, "criteria", (Criterion("Wit", "x"),)), "criterion", "prompt", False, False),
    (lambda j: j.overall_scorer.predict.demos.append(DEMO), "demonstration", "prompt", False, False),
    (lambda j: setattr(j, "calibration", Calibration((0.0, 100.0), (1.0, 90.0))), "calibration",
     "scale and calibration", False, True),
]  # fmt: skip


@pytest.mark.parametrize(("change", "part", "mark", "scores", "order"), CHANGES)
def test_every_part_is_told_and_decides_what_may_be_compared(
    cli: Any, judge_file: Path, other: Any, change: Any, part: str, mark: str, scores: bool, order: bool
) -> None:
    path = other(change)
    found = cli("diff", judge_file, path, "--json")
    assert found.code == 1
    assert {one["part"] for one in found.json["changes"]} == {part}
    comparable = found.json["comparable"]
    assert (comparable["scores"], comparable["order"]) == (scores, order)
    assert comparable["why"].endswith(f"other {mark}")
    shown = cli("diff", judge_file, path)
    assert shown.code == 1
    assert part in shown.out


def test_another_model_is_told_with_its_file(cli: Any, judge_file: Path) -> None:
    data = json.loads(judge_file.read_text())
    other = judge_file.with_name("local.json")
    data["lm"]["model"] = "local/smollm2-135m"
    other.write_text(json.dumps(data))
    found = cli("diff", judge_file, other, "--json").json
    assert found["changes"] == [{"part": "model", "name": "model", "a": "openai/fake", "b": "local/smollm2-135m"}]
    assert found["a"]["prompt"] == found["b"]["prompt"]
    assert found["a"]["model"].endswith("(by its name)")
    assert "(file " in found["b"]["model"]
    assert found["b"]["model"] in " ".join(cli("show", other).out.split())


def test_demonstrations_are_told_one_by_one_and_do_nothing_to_a_terminal(
    judge_file: Path, other: Any, cli: Any
) -> None:
    path = other(lambda j: j.overall_scorer.predict.demos.append(DEMO | {"output": "\x1b[31m[bold]x"}))
    changes = compare_judges(artifact.read(judge_file), artifact.read(path)).changes
    assert [(one.part, one.before, one.after["score"]) for one in changes] == [("demonstration", None, 60.0)]
    assert "\x1b[31m" not in cli("diff", judge_file, path).out
    assert "[bold]x" in cli("diff", judge_file, path).out


def test_rows_scored_by_both(cli: Any, judge_file: Path, other: Any, rows_file: Rows, server: Any) -> None:
    path = other(lambda j: setattr(j, "calibration", Calibration((0.0, 100.0), (0.0, 50.0))))
    rows = rows_file(12)
    found = cli("diff", judge_file, path, "--rows", rows, "--api-base", server.base, "--json")
    assert found.code == 1
    told = found.json["rows"]
    assert (told["rows"], told["n"], told["documents"]) == (12, 12, 3)
    assert (told["spearman"]["value"], told["order_flips"]["reversed"]) == (1.0, 0)  # calibration keeps the order
    assert told["difference"]["value"] < 0
    assert told["difference"]["low"] <= told["difference"]["value"] <= told["difference"]["high"]
    assert len(server.judged) == 12  # both send the same prompts, and the second takes the answers from the disk
    same = cli("diff", judge_file, judge_file, "--rows", rows, "--api-base", server.base, "--json")
    assert (same.code, same.json["rows"]["equal"], same.json["rows"]["moved"]) == (0, 12, [])


def scored(path: Path, scores: list[float | None], categories: list[str] | None = None, start: int = 0) -> Path:
    lines = []
    for i, score in enumerate(scores, start):
        verdict: dict[str, Any] = {"score": score, "failure": None if score is not None else "no score in the answer"}
        verdict |= {"category": categories[i - start]} if categories else {}
        lines.append({"id": f"r{i}", "doc_id": f"d{i}", "output": f"Text {i}.", "verdict": verdict, "judge": path.stem})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_two_scored_files_with_their_arithmetic(cli: Any, tmp_path: Path) -> None:
    a = scored(tmp_path / "a.jsonl", [1, 2, 3, 4, None, 5], ["no", "no", "yes", "yes", "", "yes"])
    b = scored(tmp_path / "b.jsonl", [2, 1, 3, 4, 3, None], ["no", "no", "no", "yes", "yes", ""])
    found = cli("diff", a, b, "--json")
    assert found.code == 1
    told = found.json["rows"]
    assert (told["rows"], told["n"], told["equal"]) == (6, 4, 2)
    assert told["failed"] == {"a": 1, "b": 1, "both": 0}
    assert told["kendall"]["value"] == pytest.approx((5 - 1) / 6)  # 5 concordant, 1 discordant
    assert told["spearman"]["value"] == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert told["order_flips"] == {"reversed": 1, "pairs": 6}
    assert told["category_flips"] == [{"a": "yes", "b": "no", "rows": 1}]
    assert told["difference"]["value"] == 0
    assert [row["id"] for row in told["moved"]] == ["r0", "r1"]
    shown = cli("diff", a, b)
    assert "yes → no" in shown.out


def test_files_of_other_rows_are_refused(cli: Any, tmp_path: Path, judge_file: Path) -> None:
    a, b = scored(tmp_path / "a.jsonl", [1, 2]), scored(tmp_path / "b.jsonl", [1, 2], start=5)
    refused = cli("diff", a, b)
    assert refused.code == 2
    assert "no id of a.jsonl is in b.jsonl ('r0' here, 'r5' there)" in refused.err
    b.write_text(a.read_text().replace("Text 1.", "Another text."))
    refused = cli("diff", a, b)
    assert refused.code == 2
    assert "id 'r1' is another output in b.jsonl (row 2)" in refused.err
    assert "two files that they scored" in cli("diff", judge_file, b).err


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_reversed_pairs_are_those_of_counting(points: list[tuple[int, int]]) -> None:
    pairs = [((a - c), (b - d)) for (a, b), (c, d) in itertools.combinations(points, 2)]
    x, y = np.array(points, dtype=float).T
    counted = sum(a * b < 0 for a, b in pairs), sum(a * b != 0 for a, b in pairs)
    assert reversed_pairs(x, y) == counted
