"""What other tasks teach: fitted by the command, used without labels and with a few."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted import PlantedReader, guessing, planted_labels
from typer.testing import CliRunner

import judgesmith as js
from judgesmith.cli.main import app
from judgesmith.errors import OptionError
from judgesmith.experiments.studies.experience import (
    RowTable,
    Task,
    draw,
    fit_experience,
    load,
    save,
)
from judgesmith.programs.judge import Judge
from judgesmith.programs.readings.bindings import opening
from judgesmith.programs.readings.bindings.opening import Opened
from judgesmith.programs.readings.experience import (
    Card,
    experience_of,
    read_experience,
)
from judgesmith.programs.readings.head import Readings
from judgesmith.programs.readings.judge import ModelReadings
from judgesmith.programs.readings.passages import Text
from judgesmith.programs.readings.trained import Trained
from judgesmith.testing.scripted import scripted_models

MODEL = "a1b2" * 16


@pytest.fixture
def lm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setitem(
        opening._opened, "test/model at None", Opened(PlantedReader(), MODEL)
    )
    with scripted_models() as make:
        lm, transport = make(guessing())
        monkeypatch.setattr("judgesmith.running.opening.open_model", lambda *_: lm)
        yield lm, transport


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [*map(str, words), "--lm", "test/model"])


@pytest.fixture
def learnt(lm: Any, tmp_path: Path) -> Path:
    """An experience of two families."""
    for seed in (1, 2):
        rows = [
            {
                "source": r.source,
                "output": f"{r.output} t{seed}",
                "doc_id": r.doc_id,
                "overall": r.scores["overall"],
            }
            for r in planted_labels(documents=15, seed=seed).rows
        ]
        (tmp_path / f"task{seed}.jsonl").write_text(
            "\n".join(map(json.dumps, rows)), encoding="utf-8"
        )
    tasks = [
        {"labels": f"task{n}.jsonl", "family": f"family {n}", "aspect": "overall"}
        for n in (1, 2)
    ]
    (tmp_path / "tasks.yaml").write_text(json.dumps({"tasks": tasks}), encoding="utf-8")
    done = run(
        "study",
        "experience",
        tmp_path / "tasks.yaml",
        "-o",
        tmp_path / "out",
        "--draws",
        1,
        "--json",
    )
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout.splitlines()[-1])
    for task in said["tasks"]:
        assert task["unlabelled"] > 2.5 > abs(task["zero_shot"])
        assert task["by_labels"]["8"][0] > 2.5
    return Path(said["experience"])


def test_a_judge_without_labels_scores_by_experience_alone(
    lm: Any, learnt: Path, tmp_path: Path
) -> None:
    _, transport = lm
    transport.requests.clear()
    saved = tmp_path / "judge.json"
    done = run(
        "new",
        "--method",
        "readings",
        "--as",
        "fluency",
        "--experience",
        learnt,
        "-o",
        saved,
    )
    assert done.exit_code == 0, done.output
    assert str(learnt) not in saved.read_text(encoding="utf-8")
    judge, labels = js.load(saved, lm=lm[0]), planted_labels(documents=10, seed=5)
    scores = [v.percent for v in judge.score_many(labels.rows)]
    assert np.corrcoef(scores, labels.scores)[0, 1] > 0.9
    assert not transport.requests


def test_the_name_of_an_aspect_says_whether_facts_decide(lm: Any, learnt: Path) -> None:
    weights = {}
    for aspect in ("fluency", "faithfulness"):
        judge = Judge(ModelReadings(aspect, experience=str(learnt)), lm=lm[0])
        judge.method.begin(lambda: lm[0])
        weights[aspect] = judge.method.head.weights["facts.triples"][1]
    assert weights["faithfulness"] > weights["fluency"] + 0.1


def test_five_labels_on_top_of_experience(lm: Any, learnt: Path) -> None:
    every = planted_labels(documents=35, per_document=1, seed=6)
    train, heldout = (
        replace(every, rows=every.rows[part]) for part in (slice(5), slice(5, None))
    )
    q = {
        known: js.compile(
            ModelReadings("overall", experience=known), train, lm=lm[0], heldout=heldout
        ).report.heldout.q
        for known in (str(learnt), "none")
    }
    assert q[str(learnt)] > max(2.5, q["none"])


def test_an_experience_is_that_of_its_model(learnt: Path, tmp_path: Path) -> None:
    assert experience_of(MODEL, str(learnt)).states
    other = experience_of("f" * 64, str(learnt))
    assert other.numbers
    assert not other.states
    assert not experience_of(MODEL, "none").numbers
    shipped = experience_of("f" * 64)
    assert shipped.numbers["assistant.mean"][2] != 0
    assert not shipped.states
    data = json.loads(learnt.read_text(encoding="utf-8"))
    assert data["card"]["sets"] == {f"task{n}.overall (45 rows)": "own" for n in (1, 2)}
    for name, change in (
        ("a.json", {"model": 3}),
        ("b.json", {"format": "judgesmith/1"}),
        ("c.json", {"numbers": [1]}),
    ):
        (tmp_path / name).write_text(json.dumps(data | change), encoding="utf-8")
        with pytest.raises(OptionError, match=f"{name} is not an experience"):
            experience_of(MODEL, str(tmp_path / name))
    with pytest.raises(OptionError, match="No such file"):
        experience_of(MODEL, str(tmp_path / "missing.json"))


def test_few_labels_come_from_as_many_documents() -> None:
    members = [i // 4 for i in range(80)]
    train, left = draw(members, 8, 0)
    assert len(train) == len({members[i] for i in train}) == 8
    assert len(left) == 80 - 32
    assert not {members[i] for i in train} & {members[i] for i in left}
    assert len({members[i] for i in draw(members, 20, 0)[0]}) == 5


@pytest.mark.parametrize("options", [{"surface": False}, {"layers": 0}])
def test_a_judge_without_labels_weighs_only_what_it_reads(
    options: dict[str, Any], lm: Any, learnt: Path
) -> None:
    judge = Judge(ModelReadings("overall", experience=str(learnt), **options), lm=lm[0])
    judge.method.begin(lambda: judge.lm)
    assert judge.score("A source.", "w1 w2 x3").failure is None


def task_of_two_systems(seed: int, *, named: bool) -> Task:
    """Rows where `system` tells a good system from a bad one, and `text` good texts from bad ones of either."""
    rng = np.random.default_rng(seed)
    better = np.repeat([0.0, 1.0], 60)
    text = rng.normal(size=120)
    values = np.column_stack([better + 0.1 * rng.normal(size=120), text])
    scores = 50 + 30 * better + 5 * text
    table = Readings(("system", "text"), values, tuple(range(120)))
    systems = tuple("ab"[int(one)] for one in better) if named else ()
    return Task(f"task {seed}", f"family {seed}", "own", table, scores, systems)


def test_experience_tells_the_texts_of_one_system_apart() -> None:
    learnt = {
        named: fit_experience(
            [task_of_two_systems(seed, named=named) for seed in (1, 2)], Card()
        )
        for named in (True, False)
    }
    weights = {
        named: {name: of[2] for name, of in known.numbers.items()}
        for named, known in learnt.items()
    }
    assert weights[True]["text"] > 5 * abs(weights[True]["system"])
    assert weights[False]["system"] > 2 * weights[False]["text"]
    assert learnt[True].level == learnt[False].level
    assert learnt[True].points == learnt[False].points


def test_a_judge_without_labels_keeps_to_the_ranges_it_has_seen() -> None:
    learnt = fit_experience(
        [task_of_two_systems(seed, named=True) for seed in (1, 2)], Card()
    )
    low, high = learnt.ranges["text"]
    assert -3.5 < low < -1.5 < 1.5 < high < 3.5
    texts = [low - 40, low, 0.0, high, high + 40]
    values = np.column_stack([np.full(5, 0.5), texts])
    table = Readings(("system", "text"), values, tuple(range(5)))
    head = learnt.head(table.names, ())
    below, least, middle, most, above = head(table)
    assert below == pytest.approx(least)
    assert above == pytest.approx(most)
    assert least < middle < most
    assert head.unlike(table) == ["text"]
    unlimited = learnt.model_copy(update={"ranges": {}}).head(table.names, ())
    assert unlimited(table)[4] > 5 * most


def test_experience_says_nothing_of_readings_beyond_its_ranges() -> None:
    learnt = fit_experience(
        [task_of_two_systems(seed, named=True) for seed in (1, 2)], Card()
    )
    near = task_of_two_systems(3, named=True).table
    assert learnt.of_seen(near) == learnt
    far = Readings(near.names, near.values + np.array([0.0, 50.0]), near.groups)
    left = learnt.of_seen(far).numbers
    assert left["text"][2] == 0 < learnt.numbers["text"][2]
    assert left["system"] == learnt.numbers["system"]


def test_states_add_no_more_than_they_did_elsewhere() -> None:
    rng = np.random.default_rng(0)
    tasks = []
    for seed in (1, 2):
        plain = task_of_two_systems(seed, named=True)
        states = {"middle": np.column_stack([plain.scores, rng.normal(size=120)])}
        values = plain.table.values
        table = Readings(plain.table.names, values, plain.table.groups, states)
        tasks.append(replace(plain, table=table))
    learnt = fit_experience(tasks, Card())
    head = learnt.head((), ("middle",))
    far = Readings(
        (), np.zeros((2, 0)), (0, 1), {"middle": np.array([[200.0, 0], [900, 0]])}
    )
    assert head(far)[0] == head(far)[1]
    assert head(far)[0] > head(tasks[0].table).mean()


def test_a_trained_readers_score_takes_the_place_of_the_own_one() -> None:
    tasks = []
    for seed in (1, 2):
        plain = task_of_two_systems(seed, named=True)
        beside = np.column_stack([plain.table.values, plain.scores, plain.scores])
        names = (*plain.table.names, "trained.score", "direct")
        table = Readings(names, beside, plain.table.groups)
        tasks.append(replace(plain, table=table))
    learnt = fit_experience(tasks, Card())
    assert set(learnt.numbers) == {"system", "text", "direct"}
    assert set(learnt.trained) == {"system", "text", "trained.score"}
    assert learnt.trained["trained.score"][2] > 0.1


def test_the_trained_reader_scores_the_rows_of_tasks(
    lm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored = list[str]()

    def score(text: Text, aspect: str) -> Trained:
        scored.append(text.judged)
        return Trained(float(len(scored)), {})

    monkeypatch.setattr("judgesmith.programs.readings.trained.trained_score", score)
    rows = [
        {"source": r.source, "output": r.output, "doc_id": r.doc_id} | dict(r.scores)
        for r in planted_labels(documents=10, seed=1).rows
    ]
    (tmp_path / "task.jsonl").write_text(
        "\n".join(map(json.dumps, rows)), encoding="utf-8"
    )
    tasks = [{"labels": "task.jsonl", "family": f} for f in ("one", "two")]
    (tmp_path / "tasks.yaml").write_text(json.dumps({"tasks": tasks}), encoding="utf-8")
    words = ("study", "experience", tmp_path / "tasks.yaml", "-o", tmp_path / "out")
    done = run(*words, "--trained", "--json")
    assert done.exit_code == 0, done.output
    assert len(scored) == len(rows)
    learnt = read_experience(tmp_path / "out" / "experience.json")
    assert "trained.score" in learnt.trained
    assert "trained.score" not in learnt.numbers

    kept = next((tmp_path / "out" / "tables").iterdir())
    known = load(kept)
    names = tuple(name for name in known.table.names if name != "trained.score")
    values = known.table.columns(names)
    old = Readings(names, values, known.table.groups, known.table.states)
    save(kept, replace(known, table=old))
    again = run(*words, "--trained")
    assert "delete it to read the rows again" in str(again.exception)


def test_kept_tables_name_the_systems(tmp_path: Path) -> None:
    task = task_of_two_systems(1, named=True)
    save(tmp_path / "task.npz", RowTable(task.table, task.scores, task.systems))
    kept = load(tmp_path / "task.npz")
    assert kept.systems == task.systems
    assert kept.table.names == task.table.names
    assert np.array_equal(kept.scores, task.scores)
