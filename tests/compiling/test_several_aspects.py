"""Several aspects on the command line: compiled in one go, scored, evaluated, reported, shown."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from packed import rows_of

import judgesmith as js
from judgesmith.programs import artifact
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.reports.rows import read_scored
from judgesmith.signatures.values import Criterion

FOLDER = Path(__file__).parents[1] / "datasets" / "awkward"
STEPS = {"clear": 37, "kind": 71}


def said(n: int, name: str) -> int:
    """What the model says of a row."""
    return min(100, max(0, n * STEPS[name] % 101 + 17 * (n % 3 - 1)))


@pytest.fixture
def rows(server: Any, fake: Any, tmp_path: Path) -> Path:
    """36 rows of 12 documents with scores of two aspects and an overall one; row 33 has none for kindness."""

    def answer(ask: Any) -> Any:
        name = "clear" if "clear of the output" in ask.text or "How clear" in ask.text else "kind"
        if "broken" in ask.last and name == "kind":
            return fake.Fault(400, "no")
        return fake.judging(lambda ask: said(int(ask.mark[1:]), name))(ask)

    server.answer = answer
    path = tmp_path / "rows.jsonl"
    made = []
    for n, row in enumerate(fake.make_rows(12, 3, lambda n: n)):
        scores = {name: float(n * step % 101) for name, step in STEPS.items() if (n, name) != (33, "kind")}
        record = {"id": row.id, "source": row.source, "output": row.output, "doc_id": row.doc_id}
        made.append(record | {"scores": scores | {"overall": float(n)}})
    path.write_text("".join(json.dumps(record) + "\n" for record in made))
    return path


@pytest.fixture
def judge(server: Any, rows: Path, tmp_path: Path) -> Path:
    """A saved judge of both aspects, as if compiled from scores of other names and scales."""
    parts = {n: js.DirectScorer(n, criteria=[Criterion(n, f"How {n} it is.")], reading="said") for n in STEPS}
    made = js.AspectsJudge(parts, lm=language_model("openai/fake", connection=Connection(server.base)))
    path = tmp_path / "judge.json"
    made.save(path)
    return path


def test_both_are_compiled_into_one_judge(cli: Any, server: Any, rows: Path, tmp_path: Path) -> None:
    saved = tmp_path / "made.json"
    command = (
        "compile", rows, "--aspect", "clear", "--aspect", "kind", "--variant", "vanilla", "--optimizer", "none",
        "--scale", 0, 100, "--lm", "openai/fake", "--api-base", server.base, "-o", saved,
    )  # fmt: skip
    planned = cli(*command, "--dry-run", "--json").json
    assert planned["calls"] == sum(planned["aspects"][name]["calls"] for name in STEPS)
    assert [planned["aspects"][name]["labelled"] for name in STEPS] == [36, 35]
    assert server.asks == []
    done = cli(*command, "--json")
    assert done.code == 0, done.err
    told = done.json
    assert set(told["aspects"]) == set(STEPS) and told["calls"] <= planned["calls"]
    assert told["aspects"]["clear"]["heldout"]["q"] != told["aspects"]["kind"]["heldout"]["q"]
    again = cli(*command)
    assert again.code == 0 and "0 calls (" in again.out  # all of them came from the disk
    for words in ("Agreement with people, by aspect", "clear", "kind", "`score` is the mean of these on 0..100"):
        assert words in " ".join(again.out.split())
    shown = cli("show", saved)
    assert shown.code == 0 and "2 aspects" in shown.out and "pooled|n:" in shown.out.replace("\n", "")
    assert set(artifact.build(artifact.read(saved)).by_aspect) == set(STEPS)


def test_all_are_those_that_the_columns_tell(cli: Any) -> None:
    rows = FOLDER / "two_scores.csv"
    done = cli("compile", rows, "--aspect", "all", "--dry-run", "--json")
    assert list(done.json["aspects"]) == ["Helpfulness", "Safety"], done.err
    assert done.json["aspects"]["Safety"]["columns"]["score"] == "Safety (1-5)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--aspect", "clear", "--aspect", "clear"), "--aspect clear was given 2 times"),
        (("--aspect", "clear", "--aspect", "new"), "there is no aspect 'new'; pass --aspect with one of: clear, kind"),
        (("--aspect", "clear", "--aspect", "all"), "--aspect all takes every aspect"),
        (("--aspect", "clear", "--aspect", "kind", "--method", "direct", "--as", "simplification/fluency"),
         "--as simplification/fluency is one aspect; with several name the task, --as simplification"),
        (("--aspect", "clear", "--aspect", "kind", "--method", "pairs", "--task", "Read."), "'clear'"),
        (("--aspect", "clear", "--aspect", "kind", "--register", "name"), "--register takes a judge of one aspect"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_before_a_call(
    cli: Any, server: Any, rows: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = cli("compile", rows, *arguments, "--lm", "openai/fake", "--api-base", server.base)
    assert done.code == 2 and words in " ".join(done.err.split()) and "Traceback" not in done.err
    assert server.asks == []


def test_too_few_labels_say_of_which_aspect(cli: Any, tmp_path: Path, rows: Path) -> None:
    records = [json.loads(line) for line in rows.read_text().splitlines()]
    for record in records[5:]:
        record["scores"].pop("kind", None)
    rows.write_text("".join(json.dumps(record) + "\n" for record in records))
    done = cli("compile", rows, "--aspect", "clear", "--aspect", "kind", "--dry-run")
    assert done.code == 2 and "aspect 'kind': rows.jsonl: 5 of 36 rows are labels" in " ".join(done.err.split())


def test_rows_have_a_verdict_of_each_aspect(cli: Any, server: Any, rows: Path, judge: Path, tmp_path: Path) -> None:
    broken = {"id": "x", "source": "Notice d900: none.", "output": "A broken r007.", "doc_id": "d900", "scores": {}}
    with rows.open("a") as file:
        file.write(json.dumps(broken) + "\n")
    scored, table = tmp_path / "scored.jsonl", tmp_path / "scored.csv"
    done = cli("score", rows, "--judge", judge, "--api-base", server.base, "-o", scored, "--json")
    assert (done.code, done.json["failed"], done.json["scored"]) == (1, 1, 36), done.err
    verdicts = [json.loads(line)["verdict"] for line in scored.read_text().splitlines()]
    for n, verdict in enumerate(verdicts[:36]):
        each = {name: said(n, name) for name in STEPS}
        assert {name: part["score"] for name, part in verdict["aspects"].items()} == each
        assert verdict["score"] == pytest.approx(sum(each.values()) / 2)
    last = verdicts[36]
    assert (last["score"], last["aspects"]["clear"]["score"], last["aspects"]["kind"]["score"]) == (
        None, said(7, "clear"), None,
    )  # fmt: skip
    assert last["failure"].startswith("kind: ") and last["aspects"]["kind"]["failure"] in last["failure"]

    for _ in range(2):  # the second time goes on with a finished file
        done = cli("score", rows, "--judge", judge, "--api-base", server.base, "-o", table)
        assert done.code == 1
    with table.open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert len(cells) == 37 and float(cells[4]["judge_score.kind"]) == said(4, "kind")
    assert cells[36]["judge_score.kind"] == cells[36]["judge_score"] == ""
    assert "HTTP 400" in cells[36]["judge_failure.kind"] and cells[36]["judge_failure.clear"] == ""
    assert (
        "for one aspect"
        in cli("score", rows, "--judge", judge, "--defer", "0.1", "--overwrite", "--api-base", server.base).err
    )

    found = [_pearson(cli("evaluate", file, "--level", "pooled", "--rounds", 50, "--json")) for file in (scored, table)]
    live = ("--judge", judge, "--api-base", server.base, "--level", "pooled", "--rounds", 50, "--json")
    found.append(_pearson(cli("evaluate", rows, *live)))
    assert set(found[0]) == {"clear", "kind"}
    assert found[1] == pytest.approx(found[0])
    assert found[2] == pytest.approx(found[0])
    whole = cli("evaluate", scored, "--human", "overall", "--level", "pooled", "--rounds", 50, "--json")
    assert "judged 'clear', 'kind'; its score is compared with human overall" in " ".join(whole.json["notes"])

    page = tmp_path / "page.html"
    done = cli("report", scored, "-o", page, "--json")
    assert done.code == 0, done.err
    shown = rows_of(page.read_text())[36]
    assert 'scope="row" dir="auto">kind</th>' in shown
    assert f"no score: {last['aspects']['kind']['failure'][:15]}" in shown


def _pearson(done: Any) -> dict[str, float]:
    """By aspect, of the one judge."""
    assert done.code == 0, done.err
    (judge,) = done.json["judges"].values()
    return {name: of["pooled"]["pearson"]["value"] for name, of in judge.items() if name != "average"}


def test_a_row_says_which_aspect_was_judged(cli: Any, server: Any, rows: Path, tmp_path: Path) -> None:
    one = js.DirectScorer("kind", criteria=[Criterion("kind", "How kind it is.")], reading="said")
    one.set_lm(language_model("openai/fake", connection=Connection(server.base)))
    one.save(tmp_path / "one.json")
    for name in ("scored.jsonl", "scored.csv"):
        scored = tmp_path / name
        done = cli("score", rows, "--judge", tmp_path / "one.json", "--api-base", server.base, "-o", scored)
        assert done.code == 0, done.err
        told = cli("evaluate", scored, "--level", "pooled", "--rounds", 50, "--json")
        assert set(_pearson(told)) == {"kind"}
        assert not [note for note in told.json["notes"] if "compared with" in note]
    assert json.loads((tmp_path / "scored.jsonl").read_text().splitlines()[0])["verdict"]["aspect"] == "kind"
    other = cli(
        "evaluate", tmp_path / "scored.jsonl", "--human", "clear", "--level", "pooled", "--rounds", 50, "--json"
    ).json
    assert any("judged 'kind'; its score is compared with human clear" in note for note in other["notes"])
    for human in ("kind", None):
        data = read_scored(tmp_path / "scored.jsonl", human=human)
        assert [side.name for side in data.sides] == [""]
        assert data.sides[0].human[4] == 4 * STEPS["kind"] % 101
