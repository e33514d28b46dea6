"""`judgesmith label` as a command: what it reads, what it exports for the other commands, what it refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from json_lines import lines, write
from labelling import HOSTILE, rows_to_label

from judgesmith import read_labels
from judgesmith.datasets.spans import read_spans
from judgesmith.errors import OptionError
from judgesmith.rooms.labelling.app import Desk, Event
from judgesmith.rooms.labelling.chances import Chances
from judgesmith.rooms.labelling.command import Label
from judgesmith.rooms.labelling.run import open_store
from judgesmith.rooms.labelling.store import Store
from judgesmith.rooms.labelling.task import Task

SUGGESTED = 10


def label(
    path: Path,
    rows: Path | None,
    answer: Callable[[dict[str, Any], int], Any],
    *raters: str,
    **options: Any,
) -> Path:
    """Every row answered by every rater as the page does it; answer(unit, number of the rater), a text to skip."""
    opened = open_store(
        Label(rows=None if rows is None else str(rows), store=path, **options).request()
    )
    desk = Desk(opened.store, opened.task)
    for who, rater in enumerate(raters or ("Ada", "Bo")):
        while (unit := desk.next(rater)["unit"]) is not None:
            said = answer(unit, who)
            what = (
                {"action": "skip", "reason": said}
                if isinstance(said, str)
                else {"action": "answer", "answer": said}
            )
            desk.take(
                Event(
                    rater=rater,
                    unit=unit["key"],
                    turn=unit["turn"],
                    request=f"{rater}-{unit['key']}-{unit['turn']}".ljust(16),
                    **what,
                )
            )
    opened.store.close()
    return path


def number(unit: dict[str, Any]) -> int:
    """Which row it is, of `rows_to_label`."""
    found: str = unit["texts"]["source"].split("rebuilt its bridge in ")[1][:4]
    return int(found) - 1900


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return rows_to_label(tmp_path / "rows.jsonl", 40)


def test_scores_of_two_raters_are_compiled_from_without_an_option(
    cli: Any, rows: Path, tmp_path: Path
) -> None:
    at = label(
        tmp_path / "s.sqlite",
        rows,
        lambda unit, who: {"score": 1 + (number(unit) + who) % 4},
        repeats=0.1,
    )
    target = tmp_path / "labels.jsonl"
    done = cli("label", "--store", at, "--export-only", "--export", target, "--json")
    assert (done.code, done.json["labels"], done.json["exported"]) == (0, 80, 80)
    told = cli("compile", target, "--lm", "openai/x", "--dry-run", "--json").json
    assert {
        name: told[name]
        for name in (
            "rows",
            "labelled",
            "outputs",
            "raters",
            "scale",
            "kind",
            "scale_from",
        )
    } == {
        "rows": 80,
        "labelled": 80,
        "outputs": 40,
        "raters": 2,
        "scale": [1, 5],
        "kind": "score",
        "scale_from": "the column's name",
    }
    read = {row.id: row for row in read_labels(target).rows}
    assert read["r3"].output.rstrip() == HOSTILE.rstrip()
    assert dict(
        zip(read["r5"].raters["overall"], read["r5"].ratings["overall"], strict=True)
    ) == {"Ada": 2, "Bo": 3}
    assert (read["r4"].doc_id, read["r4"].system) == ("d2", "a")


@pytest.mark.parametrize(
    ("options", "words", "kind", "names"),
    [
        ({"kind": "binary"}, ("fail", "pass"), "binary", ("fail", "pass")),
        (
            {"categories": "bad,ok,good"},
            ("bad", "ok", "good"),
            "category",
            ("bad", "ok", "good"),
        ),
        (
            {"categories": "mauve,teal,puce"},
            ("mauve", "teal", "puce"),
            "category",
            ("1 mauve", "2 teal", "3 puce"),
        ),
        ({"aspect": ["coherence"], "scale": (0.0, 10.0)}, None, "score", ()),
    ],
)
def test_other_labels_need_no_option_either(
    rows: Path,
    tmp_path: Path,
    cli: Any,
    options: dict[str, Any],
    words: tuple[str, ...] | None,
    kind: str,
    names: Any,
) -> None:
    def answer(unit: dict[str, Any], who: int) -> Any:
        (question,) = unit["questions"]
        return {
            question["name"]: words[number(unit) % len(words)]
            if words
            else float(number(unit) % 11)
        }

    at = label(tmp_path / "s.sqlite", rows, answer, **options)
    assert (
        cli(
            "label", "--store", at, "--export-only", "--export", tmp_path / "l.jsonl"
        ).code
        == 0
    )
    found = read_labels(tmp_path / "l.jsonl")
    assert (
        found.kind,
        found.categories,
        len(found),
        found.account and found.account.raters,
    ) == (kind, names, 40, 2)
    assert found.aspect == options.get("aspect", ["overall"])[0]
    assert found.scale == options.get("scale", found.scale)


def test_several_aspects_and_reasons_are_read_without_an_option(
    rows: Path, tmp_path: Path
) -> None:
    def answer(unit: dict[str, Any], who: int) -> Any:
        good = number(unit) % 2
        return {
            "tone": 1 + good,
            "truth": 2 - good,
            "why": {"tone": f" {who}: {good}  ", "truth": " "},
        }

    at = label(tmp_path / "s.sqlite", rows, answer, aspect=["tone", "truth"])
    told = open_store(Label(rows=None, store=at).request()).result(tmp_path / "l.jsonl")
    assert [one["question"] for one in told["agreement"]] == ["tone", "truth"]
    tone, truth = (
        read_labels(tmp_path / "l.jsonl", aspect=aspect) for aspect in ("tone", "truth")
    )
    assert (tone.rows[5].why("tone"), truth.rows[5].why("truth")) == (
        ("0: 1", "1: 1"),
        (),
    )
    assert tone.scores[5] > tone.scores[4]
    assert truth.scores[5] < truth.scores[4]
    old = {
        "kind": "score",
        "aspect": "coherence",
        "scale": [1, 5],
        "categories": [],
        "repeats": 0,
    }
    assert Task.of(old) == Task(aspects=("coherence",))


def test_preferences(rows: Path, tmp_path: Path, cli: Any) -> None:
    """Neighbouring outputs of one document are compared; where A and B stand on the page does not matter."""

    def answer(unit: dict[str, Any], who: int) -> Any:
        a, b = (unit["texts"][f"output_{side}"] for side in "ab")
        better = "tie" if who else "a" if a < b else "b"
        return {
            "preference": better,
            "why": {"preference": unit["texts"]["source"][:7]},
        }

    at = label(tmp_path / "s.sqlite", rows, answer, kind="preference")
    assert (
        cli(
            "label", "--store", at, "--export-only", "--export", tmp_path / "l.jsonl"
        ).code
        == 0
    )
    found = read_labels(tmp_path / "l.jsonl")
    assert (found.kind, len(found), found.account and found.account.raters) == (
        "preference",
        40,
        2,
    )
    by_text = {row.output: row.scores["overall"] for row in found.rows}
    assert by_text["Town 5 paid 110 crowns."] == 0.75  # won with Ada, a tie with Bo
    assert by_text["Town 5 paid 118 crowns."] == 0.25
    assert {row.output: row.why("overall") for row in found.rows}[
        "Town 5 paid 110 crowns."
    ] == ("Town 5",)


def test_spans_are_what_the_command_spans_reads(
    rows: Path, tmp_path: Path, cli: Any
) -> None:
    def answer(unit: dict[str, Any], who: int) -> Any:
        if number(unit) % 2 == 0:
            return {"errors": []}
        place = unit["texts"]["output"].index("مرحبا" if number(unit) == 3 else "paid")
        return {
            "errors": [
                {
                    "start": place,
                    "end": place + 4,
                    "severity": 4 + who,
                    "explanation": "é",
                }
            ]
        }

    at = label(tmp_path / "s.sqlite", rows, answer, kind="spans")
    done = cli(
        "label",
        "--store",
        at,
        "--export-only",
        "--export",
        tmp_path / "truth.jsonl",
        "--json",
    )
    (agreement,) = done.json["agreement"]
    assert (agreement["f1"], agreement["rows"]) == (1.0, 40)
    assert agreement["weighted_f1"] == 0.75
    found = read_spans(tmp_path / "truth.jsonl")
    assert set(found.people) == {"Ada", "Bo"}
    assert len(found.ids) == 40
    (hostile,) = found.people["Ada"]["r3"]
    assert (hostile.text, hostile.severity, found.people["Ada"]["r4"]) == (
        "مرحب",
        4,
        (),
    )


def test_a_larger_n_adds_rows_that_are_suggested(rows: Path, tmp_path: Path) -> None:
    at = tmp_path / "s.sqlite"
    label(at, rows, lambda unit, who: {"score": 1 + number(unit) % 5}, n=20)
    before = Store(at).queue()
    for _ in range(2):  # the same command again adds nothing
        store = open_store(
            Label(rows=str(rows), store=at, n=20 + SUGGESTED, order="suggest").request()
        ).store
        after = store.queue()
        assert after[:20] == before
        assert len(after) == 20 + SUGGESTED
    documents = {store.units()[key].row["doc_id"] for key in after[20:]}
    assert (
        len(documents) == SUGGESTED
    )  # each of a document without labels, as `suggest` chooses
    label(at, rows, lambda unit, who: {"score": 3}, n=20 + SUGGESTED, order="suggest")
    open_store(Label(rows=None, store=at).request()).result(tmp_path / "labels.jsonl")
    assert read_labels(tmp_path / "labels.jsonl").suggested.sum() == SUGGESTED
    rows_to_label(rows, 40, scores={"a": 1, "b": 2})  # of something else
    assert (
        open_store(
            Label(
                rows=str(rows),
                store=tmp_path / "o.sqlite",
                aspect=["c"],
                n=5,
                order="suggest",
            ).request()
        ).rows
        == 5
    )
    others = open_store(
        Label(
            rows=str(rows), store=tmp_path / "r.sqlite", n=5, order="random", seed=1
        ).request()
    ).store
    assert others.queue() != list(others.units())[:5]


def test_rows_may_be_added_or_change_places(rows: Path, tmp_path: Path) -> None:
    at = label(tmp_path / "s.sqlite", rows, lambda unit, who: {"score": 3}, "Ada")
    write(rows, [{"id": "new", "source": "s", "output": "o"}, *reversed(lines(rows))])
    opened = open_store(Label(rows=str(rows), store=at).request())
    assert opened.rows == 41
    assert Desk(opened.store, opened.task).next("Ada")["done"] == 40


def test_what_cannot_be_is_refused_in_one_line(
    cli: Any, rows: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    at = label(
        tmp_path / "s.sqlite",
        rows,
        lambda unit, who: "I cannot tell",
        kind="binary",
        n=1,
    )
    (tmp_path / "guide.md").write_bytes(b"\xff\xfe\x00g")
    (tmp_path / "empty.csv").write_text("output\n  \n")
    (tmp_path / "twice.csv").write_text("id,output\n1,a\n1,b\n")
    (tmp_path / "plain.jsonl").write_text('{"output": "a"}\n')
    (tmp_path / "text.sqlite").write_text("no database " * 100)
    for arguments, said in (
        ((), "give ROWS to label"),
        (("--export-only",), "give ROWS, or --store FILE"),
        (
            ("--export-only", "--store", tmp_path / "none.sqlite"),
            "there is no such store",
        ),
        (("none.csv",), "none.csv: there is no such file"),
        ((tmp_path / "empty.csv",), "empty.csv"),
        ((tmp_path / "twice.csv",), "id '1' is that of row 1 already"),
        ((rows, "--store", tmp_path / "text.sqlite"), "not a judgesmith label store"),
        ((rows, "--store", at, "--kind", "spans"), "holds labels with kind 'binary'"),
        (
            (rows, "--store", tmp_path / "n.sqlite", "--kind", "stars"),
            "--kind stars: unknown kind; use one of score",
        ),
        (
            (
                rows,
                "--store",
                tmp_path / "n.sqlite",
                "--kind",
                "binary",
                "--scale",
                1,
                5,
            ),
            "labels of kind binary",
        ),
        (
            (rows, "--store", tmp_path / "n.sqlite", "--order", "best"),
            "'best' is not one of 'file'",
        ),
        (
            (tmp_path / "plain.jsonl", "--kind", "preference"),
            "no two different outputs",
        ),
        ((rows, "--guidelines", tmp_path / "guide.md"), "not a text in UTF-8"),
        ((rows, "--guidelines", tmp_path / "no.md"), "guidelines cannot be read"),
        (
            ("--export-only", "--store", at, "--export", tmp_path / "labels.xlsx"),
            "written as JSON lines",
        ),
        ((rows, "--store", at, "--rater", "\n"), "--rater: the name is empty"),
    ):
        monkeypatch.chdir(tmp_path)
        done = cli("label", *arguments)
        assert done.code == 2, (arguments, done.err)
        assert said in done.err, (arguments, done.err)
        assert len(done.err.splitlines()) == 1, (arguments, done.err)
    assert not (tmp_path / "n.sqlite").exists()
    assert not (tmp_path / "none.sqlite").exists()


def test_rows_are_drawn_with_stated_probabilities(tmp_path: Path) -> None:
    """All that the judge fails, and a fifth of what it passes; the labels say so, and the rate is of all rows."""
    rows = tmp_path / "rows.jsonl"
    made = [
        {
            "id": f"r{n}",
            "source": f"question {n * 7919}",
            "output": f"answer {n * 104729}",
            "gpt4": "Fail" if n % 4 == 0 else "pass",
        }
        for n in range(400)
    ]
    write(rows, made)
    at = tmp_path / "s.sqlite"
    options: dict[str, Any] = {"kind": "binary", "chance": "gpt4:fail=1,pass=0.2"}

    def answer(unit: dict[str, Any], who: int) -> dict[str, Any]:
        wrong = int(unit["texts"]["source"].split()[1]) // 7919 % 8 == 0
        return {"binary": "fail" if wrong else "pass"}

    def opened(**more: Any) -> Any:
        return open_store(Label(rows=str(rows), store=at, **options, **more).request())

    store = opened(n=20).store
    begun = store.queue()
    assert len(begun) == 20
    assert opened().store.queue()[:20] == begun
    assert opened().store.queue() == opened().store.queue()
    label(at, rows, answer, "Ada", **options)
    target = tmp_path / "labels.jsonl"
    opened().result(target)
    labels = lines(target)
    failed = [one for one in labels if one["label_chance"] == 1]
    assert len(failed) == 100
    assert 40 <= len(labels) - len(failed) <= 80  # of 300, at .2: 60 ± 7
    assert {one["label_chance"] for one in labels} == {1, 0.2}
    for wrong in ("fail=2", "fail=half", "fail=1,pass", "fail=1,Fail=0.2"):
        with pytest.raises(OptionError, match="not of the form COLUMN:WORD=SHARE"):
            Chances.parse(f"gpt4:{wrong}")
    write(rows, [*made, {"id": "x", "source": "s", "output": "o", "gpt4": "maybe"}])
    with pytest.raises(OptionError, match=r"has 'maybe' in 'gpt4'"):
        opened()


# A decision -------------------------------------------------------------------------------------------------------


def to_decide(tmp_path: Path, misses: int) -> tuple[Path, Callable[..., Any]]:
    """300 rows of which people fail every third, and the judge passes every `misses`-th of these; and their answers."""
    rows = tmp_path / "rows.jsonl"
    made = []
    for n in range(300):
        fails = n % 3 == 0 and (n // 3) % misses != 0
        verdict = "fail" if fails else "pass"
        made.append(
            {"id": f"r{n}", "source": f"question {n * 7919}", "output": f"answer {n}"}
            | {"gpt4": verdict}
        )
    write(rows, made)

    def answer(unit: dict[str, Any], who: int) -> dict[str, Any]:
        number = int(unit["texts"]["source"].split()[1]) // 7919
        return {"binary": "fail" if number % 3 == 0 else "pass"}

    return rows, answer


def test_a_decision_is_looked_at_after_every_label(tmp_path: Path, cli: Any) -> None:
    rows, answer = to_decide(tmp_path, misses=3)
    options: dict[str, Any] = {"kind": "binary", "decide": "tpr>=0.8", "judge": "gpt4"}
    at = tmp_path / "s.sqlite"

    def opened(**more: Any) -> Any:
        return open_store(Label(rows=str(rows), store=at, **options, **more).request())

    session = opened(n=30)
    assert session.decision() == ["tpr>=0.8 is open: there is no label yet"]
    queue = session.store.queue()
    assert queue == opened(n=30).store.queue()
    label(at, rows, answer, "Ada", **options, n=30)
    (told,) = opened(n=30).decision()
    assert told.startswith("tpr>=0.8 is passed: ")
    assert told.endswith(" of 30 labels that it counts sufficed")
    # Without --decide the store knows it, and the end of the command tells the same.
    words = ("label", rows, "--store", at, "--export-only")
    target = tmp_path / "labels.jsonl"
    done = cli(*words, "--export", target, "--json")
    assert done.json["decision"] == [told]
    assert told in cli(*words).out.replace("\n", " ")
    # The judge fails 66 of 300 rows; most labels go to these, as they hold the passes that it did not pass.
    chances = {one["id"]: one["label_chance"] for one in lines(target)}
    assert len(chances) == 30
    assert sum(chance == 1 for chance in chances.values()) > 15
    assert len(set(chances.values())) == 2
    gate = ("--anytime", "--fail-under", "tpr>=0.8")
    done = cli("check", rows, "--human", target, "--judge", "gpt4", *gate)
    assert done.code == 0
    assert told in done.said.replace("\n", " ")


def test_an_order_that_decides_nothing_sooner_is_refused(tmp_path: Path) -> None:
    rows, _ = to_decide(tmp_path, misses=3)
    common: dict[str, Any] = {"rows": str(rows), "kind": "binary"}

    def opened(**more: Any) -> Any:
        at = tmp_path / f"{len(more)}{sorted(more)}.sqlite"
        return open_store(Label(**common, store=at, **more).request())

    for options, why in (
        ({"order": "decide"}, "needs --decide"),
        (
            {"order": "decide", "decide": "accuracy>=0.8", "judge": "gpt4"},
            "no order takes fewer labels",
        ),
        ({"judge": "gpt4"}, "--judge is for --decide"),
        ({"decide": "tnr>=0.8"}, "has no verdict"),
        ({"decide": "tnr>=0.8", "judge": "gpt5"}, "has no column 'gpt5'"),
        ({"decide": "way>=0.8", "judge": "gpt4"}, "cannot be looked at"),
    ):
        with pytest.raises(OptionError, match=why):
            opened(**options)
    # Rows come at random where no order helps.
    queue = opened(decide="accuracy>=0.8", judge="gpt4").store.queue()
    assert queue != opened().store.queue()
    assert sorted(queue) == sorted(opened().store.queue())
