"""Labels on the command line: what is understood is said before anything is spent, and what is learnt is decided by."""

import json
from pathlib import Path
from typing import Any

import pytest
from json_lines import lines, write

from judgesmith.datasets import read_labels

FOLDER = Path(__file__).parents[1] / "datasets" / "awkward"
EXPECTED: dict[str, dict[str, Any]] = json.loads(
    (FOLDER / "expected.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", ["google_form.csv", "own_words_named.csv"])
def test_a_dry_run_says_what_was_understood(cli: Any, name: str) -> None:
    words = EXPECTED[name].get("categories", "")
    asked = (
        "compile",
        FOLDER / name,
        "--dry-run",
        *(["--categories", words] if words else []),
    )
    understood = read_labels(
        FOLDER / name, categories=words.split(",") if words else ()
    ).understood()
    assert (
        json.loads(json.dumps(understood)).items() <= cli(*asked, "--json").json.items()
    )


def test_what_was_understood_is_said_in_one_block(cli: Any) -> None:
    said = cli("compile", FOLDER / "google_form.csv", "--dry-run").said
    for part in (
        "10 rows of google_form.csv, overall on 1..5 (said by the column's name)",
        "left out, no rating: rows 4, 9",
        "12 rows in the file, 10 of them labels",
        "score = 'Rating (1-5)'",
        "texts without a role, which the judge is not shown: 'Timestamp'",
        "rationale = 'Comments'",
    ):
        assert part in " ".join(said.split())


def test_a_benchmark_set_by_its_name(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {
            "id": str(n),
            "source": f"s{n // 2}",
            "output": f"o{n}",
            "system": "a",
            "doc_id": f"d{n // 2}",
            "scores": {"coherence": n % 4 + 1.0, "fluency": 1.0},
        }
        for n in range(12)
    ]
    write(tmp_path / "summeval.jsonl", rows)
    monkeypatch.setenv("JUDGESMITH_DATA", str(tmp_path))
    told = cli(
        "compile", "bench/summeval", "--aspect", "coherence", "--dry-run", "--json"
    ).told
    assert (told["rows"], told["scale"], told["scale_from"]) == (12, [1, 5], "given")
    cli("compile", "bench/sumeval", "--dry-run").refused("did you mean bench/summeval")


@pytest.mark.parametrize(
    ("name", "measure", "category"),
    [
        ("pass_fail.csv", "balanced_accuracy", {"pass", "fail"}),
        ("good_ok_bad.csv", "weighted_kappa", {"bad", "ok", "good"}),
        ("arena.jsonl", "pairwise_accuracy", None),
    ],
)
def test_decisions_go_from_labels_to_verdicts(
    cli: Any,
    server: Any,
    tmp_path: Path,
    name: str,
    measure: str,
    category: set[str] | None,
) -> None:
    judge, scored = tmp_path / "judge.json", tmp_path / "scored.jsonl"
    server.answer = lambda ask: (
        f"Explanation: It says so.\nScore: {len(ask.last) * 37 % 101}"
    )
    model = ("--lm", "openai/fake", "--api-base", server.base)
    told = cli(
        "compile",
        FOLDER / name,
        *model,
        "-o",
        judge,
        "--method",
        "active-critic",
        "--variant",
        "vanilla",
        "--optimizer",
        "none",
        "--json",
    ).told
    objective = {
        "balanced_accuracy": "auc",
        "weighted_kappa": "kappa",
        "pairwise_accuracy": "pairwise",
    }[measure]
    assert (
        {c["objective"] for c in told["candidates"]}
        == {told["objective"]}
        == {objective}
    )
    assert told["selected"]["value"] == told["candidates"][0]["value"]
    found = told["decisions"]
    same = {"auc": "auc", "pairwise": "pairwise_accuracy"}.get(
        objective
    )  # one number has one interval
    assert same is None or all(
        found[same][end] == told["heldout"][end] for end in ("value", "low", "high")
    )
    assert found["n"] + found["failed"] == told["heldout_rows"]
    assert 0 <= found[measure]["value"] <= 1 or measure == "weighted_kappa"
    saved = json.loads(judge.read_text())
    assert (
        saved["provenance"]["objective"]
        == saved["provenance"]["optimizer"]["objective"]
        == objective
    )
    assert ("decision" in saved, "preference" in saved) == (
        category is not None,
        category is None,
    )
    if category is None:
        assert told["heldout"]["signature"].split("|")[1] == "sample"
        asked = cli(
            "evaluate",
            FOLDER / name,
            "--judge",
            judge,
            *model,
            "--json",
            "--fail-under",
            "pairwise>=0.99",
        )
        assert asked.code == 1
        assert "not at least 0.99" in asked.err
        found = asked.json["judges"]["judge"]["overall"]["sample"]["pairwise"]
        assert found["low"] < found["value"] < 0.99
        assert found["rows"] == found["failed"] + 2 * asked.json["rows"] / 2
        # A row of two outputs gets the likelier winner and its chance; the sides' scores are what is evaluated.
        for _ in range(2):
            assert (
                cli("score", FOLDER / name, "--judge", judge, *model, "-o", scored).code
                == 0
            )
        rows = lines(scored)
        assert len(rows) == 12
        assert {row["verdict"]["category"] for row in rows} <= {
            "a",
            "b",
            "tie",
        }
        sides = [
            [row["verdict"]["details"][side]["percent"] for side in "ab"]
            for row in rows
        ]
        assert all(
            (row["verdict"]["score"] > 0.5) == (a > b)
            for row, (a, b) in zip(rows, sides, strict=True)
            if a != b
        )
        again = cli("evaluate", scored, "--json").json["judges"]["scored"]["overall"][
            "sample"
        ]["pairwise"]
        assert again["value"] == found["value"]
        one = cli(
            "score",
            FOLDER / "pass_fail.csv",
            "--judge",
            judge,
            *model,
            "-o",
            tmp_path / "one.jsonl",
        )
        assert one.code == 0  # single outputs, too
        return
    assert set(saved["decision"]["names"]) == category
    assert set(found["categories"]) == category
    done = cli("score", FOLDER / name, "--judge", judge, *model, "-o", scored)
    assert done.code == 0, done.err
    for verdict in (row["verdict"] for row in lines(scored)):
        place = sum(verdict["percent"] >= cut for cut in saved["decision"]["cuts"])
        assert saved["decision"]["names"][place] in verdict["category"].split(
            " or "
        )  # what no score tells apart
        assert verdict.get("passed") == (bool(place) if len(category) == 2 else None)
    shown = cli("show", judge).out
    assert "decides" in shown
    assert "maximised" in shown
    assert {"auc": "AUC", "kappa": "kappa"}[objective] in shown
    # The judge's own categories are what a gate looks at.
    column = {"auc": "Verdict", "kappa": "quality"}[objective]
    asked = cli(
        "evaluate", scored, "--human", column, "--fail-under", f"{objective}>=0.99"
    )
    assert asked.code == 1
    assert f"pooled {objective} is" in asked.err


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--objective", "kappa", "--json"], 0, '"objective": "kappa"'),
        (["--objective", "q"], 0, "Pearson + Spearman"),
        ([], 0, "AUC"),
        (["--objective", "aux"], 2, "did you mean 'auc'"),
        (
            ["--kind", "score", "--objective", "auc"],
            2,
            "--objective auc is for labels of kind binary",
        ),
    ],
)
def test_the_objective_is_shown_before_anything_is_spent(
    cli: Any, more: tuple[str, ...], code: int, said: str
) -> None:
    done = cli("compile", FOLDER / "pass_fail.csv", "--dry-run", *more)
    assert done.code == code
    assert said in (done.err if code else done.out)


def test_prompts_show_a_conversation_as_it_was_compiled(
    cli: Any, judge_file: Path
) -> None:
    said = cli("show", judge_file, "--prompt", FOLDER / "chat_messages.jsonl").said
    assert "User: How do I reset my password?" in said
    assert "Assistant calls search_help: {" in said
    assert "Tool search_help: Help page 7" in said
