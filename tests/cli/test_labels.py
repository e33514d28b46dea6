"""Labels on the command line: what is understood is said before anything is spent, and what is learnt is decided by."""

import json
from pathlib import Path
from typing import Any

import pytest
from json_lines import lines, write

from judgesmith.datasets.loading import read_labels

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
        "not shown to the judge: 'Timestamp'",
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


#: File of labels -> the measure of its decisions, and its categories, None for preferences.
DECISIONS = {
    "pass_fail.csv": ("balanced_accuracy", {"pass", "fail"}),
    "good_ok_bad.csv": ("weighted_kappa", {"bad", "ok", "good"}),
    "arena.jsonl": ("pairwise_accuracy", None),
}
OBJECTIVES = {
    "balanced_accuracy": "auc",
    "weighted_kappa": "kappa",
    "pairwise_accuracy": "pairwise",
}
CATEGORICAL = [name for name, (_, names) in DECISIONS.items() if names is not None]


class Decided:
    """A judge compiled from decisions, with the report of compiling.

    compiled: report and judge by the name of their labels; what is missing is compiled.
    """

    def __init__(
        self,
        cli: Any,
        server: Any,
        folder: Path,
        name: str,
        compiled: dict[str, tuple[str, str]],
    ) -> None:
        server.answer = lambda ask: (
            f"Explanation: It says so.\nScore: {len(ask.last) * 37 % 101}"
        )
        self.cli, self.labels = cli, FOLDER / name
        self.judge, self.scored = folder / "judge.json", folder / "scored.jsonl"
        self.model = ("--lm", "openai/fake", "--api-base", server.base)
        self.measure, self.categories = DECISIONS[name]
        self.objective = OBJECTIVES[self.measure]
        if name not in compiled:
            compiled[name] = self.compile(), self.judge.read_text()
        report, judge = compiled[name]
        self.judge.write_text(judge)
        self.report, self.saved = json.loads(report), json.loads(judge)

    def compile(self) -> str:
        words = ("--method", "active-critic", "--variant", "vanilla")
        output = ("-o", self.judge, "--optimizer", "none", "--json")
        return self.cli("compile", self.labels, *self.model, *words, *output).said

    def score(self, rows: Path | None = None, output: Path | None = None) -> Any:
        files = (rows or self.labels, "--judge", self.judge)
        return self.cli("score", *files, *self.model, "-o", output or self.scored)


@pytest.fixture(scope="module")
def compiled() -> dict[str, tuple[str, str]]:
    return {}


@pytest.fixture
def decided(
    cli: Any,
    server: Any,
    tmp_path: Path,
    request: Any,
    compiled: dict[str, tuple[str, str]],
) -> Decided:
    return Decided(cli, server, tmp_path, request.param, compiled)


every_kind = pytest.mark.parametrize("decided", DECISIONS, indirect=True)
categorical = pytest.mark.parametrize("decided", CATEGORICAL, indirect=True)
preferences = pytest.mark.parametrize(
    "decided", [name for name in DECISIONS if name not in CATEGORICAL], indirect=True
)


@every_kind
def test_decisions_have_an_objective_of_their_own(decided: Decided) -> None:
    report, objective = decided.report, decided.objective
    assert report["objective"] == objective
    assert {c["objective"] for c in report["candidates"]} == {objective}
    assert report["selected"]["value"] == report["candidates"][0]["value"]
    assert decided.saved["provenance"]["objective"] == objective
    assert decided.saved["provenance"]["optimizer"]["objective"] == objective


@every_kind
def test_decisions_are_measured_on_held_out_rows(decided: Decided) -> None:
    report, decisions = decided.report, decided.report["decisions"]
    assert decisions["n"] + decisions["failed"] == report["heldout_rows"]
    if decided.measure != "weighted_kappa":
        assert 0 <= decisions[decided.measure]["value"] <= 1
    same = {"auc": "auc", "pairwise": "pairwise_accuracy"}.get(decided.objective)
    for end in ("value", "low", "high") if same else ():
        assert decisions[same][end] == report["heldout"][end]  # one interval


@every_kind
def test_a_judge_decides_or_prefers_as_its_labels_do(decided: Decided) -> None:
    categories = decided.categories is not None
    assert ("decision" in decided.saved) == categories
    assert ("preference" in decided.saved) != categories


@preferences
def test_preferences_are_evaluated_within_documents(decided: Decided) -> None:
    signature = decided.report["heldout"]["signature"]
    assert signature.split("|")[1] == "sample"
    words = ("--judge", decided.judge, *decided.model, "--json")
    gate = ("--fail-under", "pairwise>=0.99")
    asked = decided.cli("evaluate", decided.labels, *words, *gate)
    assert asked.code == 1
    assert "not at least 0.99" in asked.err
    found = asked.json["judges"]["judge"]["overall"]["sample"]["pairwise"]
    assert found["low"] < found["value"] < 0.99
    assert found["rows"] == found["failed"] + asked.json["rows"]


@preferences
def test_scored_pairs_have_the_agreement_of_the_judge(decided: Decided) -> None:
    words = ("--judge", decided.judge, *decided.model, "--json")
    live = decided.cli("evaluate", decided.labels, *words).json
    assert decided.score().code == 0
    scored = decided.cli("evaluate", decided.scored, "--json").json
    values = [
        result["judges"][name]["overall"]["sample"]["pairwise"]["value"]
        for result, name in ((live, "judge"), (scored, "scored"))
    ]
    assert values[0] == values[1]


@preferences
def test_a_row_of_two_outputs_gets_the_likelier_winner(decided: Decided) -> None:
    for _ in range(2):  # the second run finds every row
        assert decided.score().code == 0
    rows = lines(decided.scored)
    assert len(rows) == 12
    for verdict in (row["verdict"] for row in rows):
        assert verdict["category"] in {"a", "b", "tie"}
        a, b = (verdict["details"][side]["percent"] for side in "ab")
        if a != b:
            assert (verdict["score"] > 0.5) == (a > b)


@preferences
def test_a_judge_of_preferences_scores_single_outputs(
    decided: Decided, tmp_path: Path
) -> None:
    done = decided.score(FOLDER / "pass_fail.csv", tmp_path / "one.jsonl")
    assert done.code == 0, done.err


@categorical
def test_a_verdict_has_the_category_between_the_cuts(decided: Decided) -> None:
    decision = decided.saved["decision"]
    assert set(decision["names"]) == decided.categories
    assert set(decided.report["decisions"]["categories"]) == decided.categories
    done = decided.score()
    assert done.code == 0, done.err
    for verdict in (row["verdict"] for row in lines(decided.scored)):
        place = sum(verdict["percent"] >= cut for cut in decision["cuts"])
        # Categories that no score distinguishes are joined by "or".
        assert decision["names"][place] in verdict["category"].split(" or ")
        passed = bool(place) if len(decision["names"]) == 2 else None
        assert verdict.get("passed") == passed


@categorical
def test_a_judges_decision_is_shown(decided: Decided) -> None:
    shown = decided.cli("show", decided.judge).out
    assert "decides" in shown
    assert "maximised" in shown
    assert {"auc": "AUC", "kappa": "kappa"}[decided.objective] in shown


@categorical
def test_a_gate_looks_at_the_judges_own_categories(decided: Decided) -> None:
    decided.score()
    column = {"auc": "Verdict", "kappa": "quality"}[decided.objective]
    gate = ("--human", column, "--fail-under", f"{decided.objective}>=0.99")
    asked = decided.cli("evaluate", decided.scored, *gate)
    assert asked.code == 1
    assert f"pooled {decided.objective} is" in asked.err


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
