"""A judge's agreement is of one question and one model: every command keeps both, or says both readings."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from json_lines import write
from typer.testing import CliRunner

import judgesmith as js
from judgesmith.cli.main import app
from judgesmith.optimizers.examples import row_key
from judgesmith.programs import artifact
from judgesmith.programs.contract import Contract, Question
from judgesmith.programs.models.names import qualified
from judgesmith.rooms.adapters.asserting import assert_agreement, assert_judged
from judgesmith.rooms.engines.batches import BatchScorer
from judgesmith.rooms.engines.folder import Output, opened_rows
from judgesmith.rooms.serving.service import Served
from judgesmith.scoring.command import Score

RATERS = ("Rating Anna", "Rating Ben")
NAMED = [word for name in RATERS for word in ("--columns", f"rater_score={name}")]
Records = list[dict[str, Any]]


def question(
    *ratings: str, kind: str = "score", high: float = 5, aspect: str = "overall"
) -> Question:
    return Question(ratings, kind, (1.0, high), aspect)


def run(*words: object) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


def rows(count: int = 40, seed: int = 0) -> Records:
    """Rows of two raters, with thumbs of which people are of another mind."""
    rng = np.random.default_rng(seed)
    made = []
    for n in range(count):
        quality = rng.normal()
        words = " ".join(f"w{rng.integers(99999)}" for _ in range(12))
        stars = np.clip(np.round(3 + 1.2 * quality + rng.normal(0, 0.3, 2)), 1, 5)
        made.append(
            {
                "id": f"r{seed}-{n}",
                "source": f"Question {seed}.{n} of {words}",
                "output": f"Answer {n}: {words}",
                RATERS[0]: int(stars[0]),
                RATERS[1]: int(stars[1]),
                "Thumbs": "👎" if quality > 0 else "👍",
                "gpt4": round(quality, 3),
            }
        )
    return made


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judge of two raters' scores, that weighs a column and asks no model."""
    folder = tmp_path_factory.mktemp("judge")
    labels = write(folder / "labels.jsonl", rows())
    done = run(
        *("compile", labels, *NAMED, "--signal", "gpt4", "--heldout", "0.5"),
        *("-o", folder / "judge.json"),
    )
    assert done.exit_code == 0, done.output
    return folder / "judge.json"


def earlier(judge: Path) -> Path:
    """The judge as an earlier version saved it: raters as one text, and no contract."""
    data = json.loads(judge.read_text(encoding="utf-8"))
    provenance = data["provenance"]
    columns = provenance.pop("contract")["columns"]
    columns["score"] = ", ".join(columns.pop("rater_score"))
    provenance["labels"]["columns"] = columns
    path = judge.with_name("earlier.json")
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_a_contract_is_saved_with_raters_as_a_list(compiled: Path) -> None:
    contract = json.loads(compiled.read_text(encoding="utf-8"))["provenance"][
        "contract"
    ]
    assert contract["columns"]["rater_score"] == list(RATERS)
    assert "score" not in contract["columns"]
    assert (contract["kind"], contract["scale"]) == ("score", [1.0, 5.0])
    assert (contract["aspect"], contract["model"]) == ("overall", "none")


@pytest.mark.parametrize("version", ["now", "earlier"])
def test_evaluate_goes_by_the_judge_s_raters(
    compiled: Path, version: str, tmp_path: Path
) -> None:
    path = compiled if version == "now" else earlier(compiled)
    file = write(
        tmp_path / "new.jsonl", [{"Thumbs": "👍"} | row for row in rows(seed=1)]
    )
    done = run(
        "evaluate", file, "--judge", path, "--json", "--fail-under", "spearman>=0.4"
    )
    assert done.exit_code == 0, done.exception or done.output
    told = json.loads(done.stdout)
    assert (
        "human ratings are the mean of the columns 'Rating Anna', 'Rating Ben'"
        in told["notes"]
    )
    name = path.stem
    assert told["judges"][name]["overall"]["pooled"]["spearman"]["value"] > 0.8


def test_a_column_that_the_first_row_lacks_is_the_judge_s_too(
    compiled: Path, tmp_path: Path
) -> None:
    made = rows(seed=1)
    del made[0][RATERS[1]]
    file = write(tmp_path / "new.jsonl", made)
    done = run("evaluate", file, "--judge", compiled, "--json")
    assert done.exit_code == 0, done.exception or done.output
    assert any(
        "'Rating Anna', 'Rating Ben'" in n for n in json.loads(done.stdout)["notes"]
    )


def other_raters(row: dict[str, Any]) -> dict[str, Any]:
    ben = row.pop(RATERS[1])
    return row | {"Rating Cora": ben}


def other_scale(row: dict[str, Any]) -> dict[str, Any]:
    return row | {name: 2 * row[name] for name in RATERS}


def other_kind(row: dict[str, Any]) -> dict[str, Any]:
    words = {name: "pass" if row[name] > 2 else "fail" for name in RATERS}
    return row | words


def other_aspect(row: dict[str, Any]) -> dict[str, Any]:
    politeness = 6 - row.pop(RATERS[0])
    row.pop(RATERS[1])
    return row | {"scores": {"politeness": politeness}}


def other_column(row: dict[str, Any]) -> dict[str, Any]:
    for name in RATERS:
        del row[name]
    return row


CHANGES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "raters": other_raters,
    "scale": other_scale,
    "kind": other_kind,
    "aspect": other_aspect,
    "column": other_column,
}


def scored(judge: Path, folder: Path) -> Path:
    """New rows without ratings, scored."""
    bare = [
        {k: v for k, v in row.items() if k not in (*RATERS, "Thumbs")}
        for row in rows(seed=1)
    ]
    output = folder / "scored.jsonl"
    done = run(
        "score", write(folder / "bare.jsonl", bare), "--judge", judge, "-o", output
    )
    assert done.exit_code == 0, done.output
    return output


COMMANDS: dict[str, Callable[[Path, Path, Path], tuple[object, ...]]] = {
    "evaluate": lambda file, judge, _: ("evaluate", file, "--judge", judge),
    "compile": lambda file, judge, folder: (
        *("compile", file, "--start", judge, "-o", folder / "next.json", "--dry-run"),
    ),
    "watch": lambda file, judge, _: ("watch", file, "--judge", judge, "--baseline", 2),
    "estimate": lambda file, judge, folder: (
        *("estimate", scored(judge, folder), "--human", file),
    ),
    "suggest": lambda file, judge, folder: (
        *("suggest", scored(judge, folder), "--labels", file),
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("change", CHANGES)
def test_another_question_is_refused_with_both_readings(
    compiled: Path, command: str, change: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "new.jsonl", map(CHANGES[change], rows(seed=1)))
    done = run(*COMMANDS[command](file, compiled, tmp_path))
    assert done.exit_code != 0, done.output
    said = str(done.exception)
    if said.startswith("new.jsonl: columns "):  # asked which of several is meant
        return
    assert "was compiled from 'Rating Anna' and 'Rating Ben' (score on 1..5)" in said
    assert "it would be measured on" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_the_judge_s_own_question_is_kept(
    compiled: Path, command: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "new.jsonl", rows(seed=1))
    words = COMMANDS[command](file, compiled, tmp_path)
    done = run(*words, "--json")
    assert done.exit_code == 0, done.exception or done.output
    if command == "estimate":
        told = json.loads(done.stdout)
        mean = np.mean([[row[name] for name in RATERS] for row in rows(seed=1)])
        (system,) = told["systems"].values()
        assert system["mean"] == pytest.approx(mean, abs=0.01)


def test_ratings_that_the_user_names_may_have_other_names(
    compiled: Path, tmp_path: Path
) -> None:
    file = write(tmp_path / "new.jsonl", map(other_raters, rows(seed=1)))
    named = (
        "--columns",
        "rater_score=Rating Anna",
        "--columns",
        "rater_score=Rating Cora",
    )
    done = run("evaluate", file, "--judge", compiled, *named, "--json")
    assert done.exit_code == 0, done.exception or done.output
    (note,) = [n for n in json.loads(done.stdout)["notes"] if "was compiled from" in n]
    assert "'Rating Anna' and 'Rating Ben'" in note
    assert "'Rating Anna' and 'Rating Cora'" in note


def test_a_scored_file_may_be_compared_with_ratings_that_are_named(
    compiled: Path, tmp_path: Path
) -> None:
    output = tmp_path / "scored.jsonl"
    file = write(tmp_path / "new.jsonl", rows(seed=1))
    assert run("score", file, "--judge", compiled, "-o", output).exit_code == 0
    told = json.loads(run("evaluate", output, "--json").stdout)
    assert told["judges"]["scored"]["overall"]["pooled"]["spearman"]["value"] > 0.8
    done = run("evaluate", output, "--human", "Thumbs", "--json")
    assert done.exit_code == 0, done.exception or done.output
    told = json.loads(done.stdout)
    assert any("it would be measured on 'Thumbs' (binary" in n for n in told["notes"])


# -- compile time and now


def test_agreement_of_the_file_stands_beside_the_new_one(
    compiled: Path, tmp_path: Path
) -> None:
    def turned(row: dict[str, Any]) -> dict[str, Any]:
        return row | {name: 6 - row[name] for name in RATERS}

    for made, differs in (
        (rows(seed=1), False),
        (list(map(turned, rows(seed=1))), True),
    ):
        file = write(tmp_path / "new.jsonl", made)
        told = json.loads(run("evaluate", file, "--judge", compiled, "--json").stdout)
        (claim,) = told["claims"]
        assert claim["differs"] is differs
        assert claim["then"]["n"] == 20
        (note,) = [n for n in told["notes"] if "when it was compiled" in n]
        assert ("people or texts changed" in note) is differs
        against = [n for n in told["notes"] if "runs against people" in n]
        assert bool(against) is differs
        assert not any("--absolute" in n for n in against)


def test_a_judge_against_people_is_not_recommended(tmp_path: Path) -> None:
    labels = write(tmp_path / "labels.jsonl", rows())
    done = run(
        *("compile", labels, *NAMED, "--signal", "gpt4=2..-2", "--take", "zero-shot"),
        *("--heldout", "0.5", "-o", tmp_path / "judge.json"),
    )
    assert done.exit_code == 1, done.exception or done.output
    assert "runs against people" in " ".join(done.output.split())
    assert "Next: judgesmith score" not in done.output


# -- rows that it was compiled from


def test_assert_agreement_leaves_out_what_the_judge_learnt_from(
    compiled: Path, tmp_path: Path
) -> None:
    file = write(tmp_path / "labels.jsonl", rows())
    told = assert_agreement(file, judge=compiled, at_least="spearman>=0.4")
    assert told["rows"] == 20
    told = assert_agreement(
        file, judge=compiled, at_least="spearman>=0.4", unseen=False
    )
    assert told["rows"] == 40


def test_without_a_row_left_it_is_said_what_to_do(
    compiled: Path, tmp_path: Path
) -> None:
    seen = artifact.read(compiled).provenance["seen"]
    learnt = [r for r in rows() if row_key(r["source"], r["output"]) in seen]
    file = write(tmp_path / "learnt.jsonl", learnt)
    with pytest.raises(js.LabelsError, match=r"--heldout 0\.5.*JUDGE"):
        assert_agreement(file, judge=compiled, at_least="spearman>=0.4")


# -- the model


AGREED = "Q=1.92 [1.05, 2.45] r+rho+tau|pooled|n:29|failed:0|seed:0"


@pytest.fixture
def measured(judge_file: Path) -> Path:
    """The saved judge of the server's model, as if it had been compiled with it."""
    data = json.loads(judge_file.read_text(encoding="utf-8"))
    contract = Contract({"output": "output"}, question("score", high=100))
    model = {"model": "openai/fake", "fingerprint": "openai/fake"}
    data["provenance"] = {
        "labels": {"origin": "labels.csv", "aspect": "overall", "rows": 40},
        "contract": contract.to_dict() | model,
        "heldout": {"signature": AGREED},
    }
    data["sureness"] = {
        **{"percent": [50.0], "error": [5.0], "coverage": [0.9], "times": [2.0]},
        **{"rows": 40, "documents": 40},
    }
    judge_file.write_text(json.dumps(data), encoding="utf-8")
    return judge_file


def verdicts(scored: Path) -> list[dict[str, Any]]:
    lines = scored.read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["verdict"] for line in lines]


def test_another_model_has_no_interval_and_no_agreement(
    cli: Any, measured: Path, server: Any, rows_file: Any, tmp_path: Path
) -> None:
    rows, out = rows_file(4), tmp_path / "scored.jsonl"
    where = ("--judge", measured, "--api-base", server.base)
    cli("score", rows, *where, "-o", out)
    assert all(v["interval"] and not v["notes"] for v in verdicts(out))
    assert verdicts(out)[0]["contract"]["agreement"] == AGREED
    page = cli("report", out, "-o", tmp_path / "page.html")
    assert "Scored by judge.json with openai/fake" in page.out
    assert "Q 1.92 [1.05, 2.45] (29 rows)" in page.out

    moved = tmp_path / "moved.jsonl"
    done = cli("score", rows, *where, "--lm", "openai/newer", "-o", moved)
    line = "measured with openai/fake, and asks openai/newer now"
    assert " ".join(done.err.split()).count(line) == 1
    assert all(
        v.get("interval") is None and line in v["notes"][0] for v in verdicts(moved)
    )
    assert not {"agreement", "baseline"} & set(verdicts(moved)[0]["contract"])
    page = cli("report", moved, "-o", tmp_path / "page.html")
    assert "asks openai/newer now" in page.out
    assert "1.92" not in page.out
    cli("score", rows, *where, "--lm", "openai/newer", "--defer", 0.5).refused(
        "its errors are not known"
    )


def test_the_same_model_at_another_address_is_the_same(
    measured: Path, server: Any
) -> None:
    here = js.load(measured, api_base=server.base)
    there = js.load(measured, api_base="http://127.0.0.1:9/v1")
    assert here.stated_agreement == there.stated_agreement == AGREED
    other = js.load(measured, lm="openai/newer", api_base=server.base)
    assert other.stated_agreement == ""
    assert "held out" not in repr(other)
    assert other.score("s", "r042").interval is None
    # A judge that was moved and saved says so still; it has its contract with it.
    other.save(measured)
    assert js.load(measured, api_base=server.base).moved.startswith("measured with")


def test_the_line_is_in_a_gate_and_at_a_server(measured: Path, server: Any) -> None:
    other = js.load(measured, lm="openai/newer", api_base=server.base)
    told = assert_judged(["r042"], judge=other, at_least="mean>=1")
    assert told["note"].startswith("the judge was measured with openai/fake")
    about = Served("mine", other, other.lm).about()
    assert about["agreement"] == ""
    assert "asks openai/newer now" in about["note"]


def test_a_run_on_an_engine_is_of_one_address(
    measured: Path, server: Any, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    rows = write(tmp_path / "rows.jsonl", [{"id": "a", "output": "r042"}])

    def opened(base: str) -> Any:
        command = Score(rows=str(rows), judge=measured, on="ray", api_base=base)
        scorer = BatchScorer(measured, None, command.connection())
        return opened_rows(command, Output(str(tmp_path / "out")), scorer)

    assert opened(server.base).count == 1
    assert opened(server.base).count == 1
    with pytest.raises(js.OptionError, match="at another address"):
        opened("http://127.0.0.1:9/v1")
    mark = (tmp_path / "out/run.json").read_text(encoding="utf-8")
    assert "127.0.0.1" not in mark


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("gpt-4o-mini", "openai/gpt-4o-mini", True),
        ("ollama/llama3.1", "ollama_chat/llama3.1:latest", True),
        ("openai/gpt-4o-mini", "azure/gpt-4o-mini", False),
        ("claude-3-haiku", "anthropic/claude-3-haiku", True),
        ("ollama_chat/llama3.1:8b", "ollama_chat/llama3.1:70b", False),
    ],
)
def test_a_served_model_is_known_by_its_provider_and_name(
    one: str, other: str, same: bool
) -> None:
    assert (qualified(one) == qualified(other)) is same


# -- the check itself


@pytest.mark.parametrize(
    ("read", "same"),
    [
        (question("rating"), True),  # both are called a score in so many words
        (question("Score"), True),
        (question("Tone"), False),
        (question("score", high=7), False),
        (question("Passed", kind="binary"), False),
        (question("score", kind="preference"), False),
        (question("score", kind="category"), True),
        (question("score", aspect="fluency"), False),
        (Question(("score",), "", None, "overall"), True),
    ],
)
def test_the_check(read: Question, same: bool) -> None:
    contract = Contract({"score": "score"}, question("score"))
    if same:
        assert contract.check(read, judge="j.json", origin="new.csv") is None
    else:
        with pytest.raises(js.OptionError, match=r"compiled from .score..*measured on"):
            contract.check(read, judge="j.json", origin="new.csv")
