"""`judgesmith compare` as a user runs it: files of every shape, refusals, exit codes, the page, kept versions."""

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from json_lines import lines, write

Cli = Callable[..., Any]
Rows = list[dict[str, Any]]
TOLD = {"judge": "tone.json", "model": "openai/some"}


def answers(
    system: str, seed: int, *, better: float = 0.0, rated: int = 0, count: int = 40
) -> Rows:
    """Scored rows of one version; people rated the first documents, which stand in an order drawn by chance."""
    rng, made = random.Random(seed), Rows()
    order = random.Random(9).sample(range(count), count)
    for d in range(count):
        quality = 3 + better + random.Random(d).gauss(0, 0.6) + rng.gauss(0, 0.5)
        row: dict[str, Any] = {
            "id": str(d),
            "source": f"question {d}",
            "output": f"{system} answers question {d}",
            "system": system,
            "verdict": {
                "score": round(quality - 0.4 + rng.gauss(0, 0.4), 3),
                "failure": None,
                "contract": TOLD,
            },
            "judge": "abc",
        }
        if order[d] < rated:
            row["score"] = min(5.0, max(1.0, round(2 * quality) / 2))
        made.append(row)
    return made


def without(rows: Rows, *names: str) -> Rows:
    return [
        {name: cell for name, cell in row.items() if name not in names} for row in rows
    ]


def history(count: int = 9) -> Rows:
    rng, made = random.Random(5), Rows()
    for k in range(count):
        made += answers(f"e{k}", 50 + k, better=rng.gauss(0, 0.6), rated=15)
    return made


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """A file for each version, the new one better, each with fifteen ratings."""
    old = write(tmp_path / "old.jsonl", answers("v1", 1, rated=15))
    new = write(tmp_path / "new.jsonl", answers("v2", 2, better=1.0, rated=15))
    return old, new


@pytest.fixture
def bare(tmp_path: Path) -> tuple[Path, Path]:
    """The same without ratings."""
    old = write(tmp_path / "old_bare.jsonl", answers("v1", 1))
    new = write(tmp_path / "new_bare.jsonl", answers("v2", 2, better=1.0))
    return old, new


def test_two_files(cli: Cli, two: tuple[Path, Path]) -> None:
    done = cli("compare", *two)
    assert done.code == 0, done.err
    assert done.out.startswith("v2 is better than v1: +")
    assert "by 15 labelled documents of v1 and 15 of v2." in done.out.replace("\n", " ")
    back = cli("compare", *reversed(two))
    assert back.code == 1
    assert back.out.startswith("v1 is worse than v2: -")


def test_one_file_with_a_column_of_the_version_says_the_same(
    cli: Cli, two: tuple[Path, Path], tmp_path: Path
) -> None:
    apart = cli("compare", *two, "--json").json
    both = write(tmp_path / "both.jsonl", [*lines(two[0]), *lines(two[1])])
    told = cli("compare", both, "--json").json
    for name in ("sentence", "difference", "p", "verdict", "exit_code"):
        assert told[name] == apart[name]


def test_files_that_do_not_name_their_version_are_named_after_themselves(
    cli: Cli, two: tuple[Path, Path], tmp_path: Path
) -> None:
    files = [
        write(tmp_path / f"prompt{k}.jsonl", without(lines(path), "system"))
        for k, path in enumerate(two)
    ]
    told = cli("compare", *files, "--json").json
    assert (told["base"], told["new"]) == ("prompt0", "prompt1")
    same = [
        write(
            tmp_path / f"run{k}.jsonl",
            [row | {"system": "gpt-4o"} for row in lines(path)],
        )
        for k, path in enumerate(two)
    ]
    told = cli("compare", *same, "--json").json
    assert (told["base"], told["new"]) == ("run0", "run1")


def test_ratings_in_a_file_of_their_own(
    cli: Cli, two: tuple[Path, Path], bare: tuple[Path, Path], tmp_path: Path
) -> None:
    rated = [row for path in two for row in lines(path) if "score" in row]
    labels = write(tmp_path / "labels.jsonl", without(rated, "verdict", "judge"))
    apart = cli("compare", *bare, "--human", labels, "--json").json
    assert apart["sentence"] == cli("compare", *two, "--json").json["sentence"]
    named = write(
        tmp_path / "named.jsonl", without(rated, "verdict", "judge", "output", "source")
    )
    by_name = cli("compare", *bare, "--human", named, "--json").json
    assert by_name["difference"] == apart["difference"]
    vague = write(
        tmp_path / "vague.jsonl",
        without(rated[:15], "verdict", "judge", "output", "source", "system"),
    )
    cli("compare", *bare, "--human", vague).refused_at_once("is an answer of v1, v2")


def test_a_column_of_ratings_may_be_called_like_an_option(
    cli: Cli, two: tuple[Path, Path], tmp_path: Path
) -> None:
    files = []
    for path in two:
        renamed = [
            {("new" if name == "score" else name): cell for name, cell in row.items()}
            for row in lines(path)
        ]
        files.append(write(tmp_path / f"r_{path.name}", renamed))
    told = cli("compare", *files, "--human", "new", "--json").json
    assert told["labelled"] == [15, 15]
    assert told["aspect"] == "new"


def test_nothing_is_decided_without_ratings(cli: Cli, bare: tuple[Path, Path]) -> None:
    done = cli("compare", *bare)
    assert done.code == 3
    assert "Undecided whether v2 is better than v1. Label 20 documents of both." in (
        " ".join(done.out.split())
    )
    assert "--keep versions.jsonl" in done.out


def test_a_gate_without_ratings_is_one_of_the_judges_scores(
    cli: Cli, bare: tuple[Path, Path]
) -> None:
    passed = cli("compare", *bare, "--fail-if-worse")
    assert passed.code == 0
    failed = cli("compare", *reversed(bare), "--fail-if-worse", "--looks", 50)
    assert failed.code == 1
    told = " ".join(failed.out.split())
    assert "Failed: v1 is worse than v2 by the judge's scores." in told
    assert "(level 0.001); a loss of 0." in told


def test_a_gate_takes_peoples_word_before_the_judges(
    cli: Cli, two: tuple[Path, Path], tmp_path: Path
) -> None:
    worse = lines(two[1])
    for row in worse:
        row["verdict"]["score"] -= 4  # the judge hates what people like
    new = write(tmp_path / "hated.jsonl", worse)
    done = cli("compare", two[0], new, "--fail-if-worse")
    assert done.code == 0
    assert "is not found to be worse than v1 by people's ratings" in done.out


def test_a_history_and_the_file_that_keeps_it(
    cli: Cli, bare: tuple[Path, Path], tmp_path: Path
) -> None:
    kept = tmp_path / "versions.jsonl"
    every = write(tmp_path / "history.jsonl", history())
    old = write(tmp_path / "rated.jsonl", answers("v1", 1, rated=15))
    first = cli("compare", old, every, "--base", "v1", "--new", "e0", "--keep", kept)
    assert first.code in (0, 1, 3), first.err
    saved = lines(kept)
    assert len(saved) == 10 * 40
    assert not any("answers question" in json.dumps(row) for row in saved)
    by_file = cli("compare", old, bare[1], "--history", every, "--json").json
    by_kept = cli("compare", *bare, "--history", kept, "--json").json
    assert by_file["basis"] == by_kept["basis"] == "other versions"
    assert by_kept["difference"] == pytest.approx(by_file["difference"], abs=1e-6)
    assert by_kept["verdict"] == "better"
    assert by_kept["p"] <= 0.1
    again = cli("compare", *bare, "--history", kept, "--keep", kept, "--json")
    assert again.code == 0
    assert lines(kept) == saved  # a rating that was kept stays


def test_a_history_of_another_judge_is_refused(
    cli: Cli, bare: tuple[Path, Path], tmp_path: Path
) -> None:
    others = [row | {"judge": "xyz"} for row in history()]
    cli(
        "compare", *bare, "--history", write(tmp_path / "other.jsonl", others)
    ).refused_at_once("scores of different judges cannot be compared")
    moved = history()
    for row in moved:
        row["verdict"] = row["verdict"] | {"contract": TOLD | {"model": "openai/else"}}
    cli(
        "compare", *bare, "--history", write(tmp_path / "moved.jsonl", moved)
    ).refused_at_once("openai/else")


def test_comparisons_count_wins_whatever_the_side(cli: Cli, tmp_path: Path) -> None:
    rng, rows, turned = random.Random(3), Rows(), Rows()
    for d in range(60):
        good = "prompt-B" if rng.random() < 0.75 else "prompt-A"
        bad = {"prompt-A": "prompt-B", "prompt-B": "prompt-A"}[good]
        judged = good if rng.random() < 0.8 else bad
        for made, sides in ((rows, (good, bad)), (turned, (bad, good))):
            first, second = sides if d % 3 else sides[::-1]
            row = {
                "id": str(d),
                "source": f"question {d}",
                "output_a": f"{first} says {d}",
                "output_b": f"{second} says {d}",
                "system_a": first,
                "system_b": second,
                "gpt4_winner": "A" if judged == first else "B",
            }
            if d % 2:
                row["winner"] = "A" if good == first else "B"
            made.append(row)
    one = cli(
        "compare", write(tmp_path / "a.jsonl", rows), "--judge", "gpt4_winner", "--json"
    ).json
    other = cli(
        "compare",
        write(tmp_path / "b.jsonl", turned),
        "--judge",
        "gpt4_winner",
        "--json",
    ).json
    assert one["sentence"] == other["sentence"]
    assert one["sentence"].startswith("prompt-B is better than prompt-A: it wins ")
    labels = write(tmp_path / "labels.jsonl", turned)
    apart = cli(
        "compare",
        write(tmp_path / "c.jsonl", without(rows, "winner")),
        *("--judge", "gpt4_winner", "--human", labels, "--json"),
    ).json
    assert apart["sentence"] == one["sentence"]
    unnamed = write(tmp_path / "d.jsonl", without(rows, "system_a", "system_b"))
    cli("compare", unnamed, "--judge", "gpt4_winner").refused_at_once(
        "--columns system_a"
    )


def test_unfinished_rows_are_counted(
    cli: Cli, two: tuple[Path, Path], tmp_path: Path
) -> None:
    rows = lines(two[1])
    for row in rows[:5]:
        row["verdict"] = {"score": None, "failure": "cut off", "contract": TOLD}
    new = write(tmp_path / "failed.jsonl", rows[:38])
    done = cli("compare", two[0], new)
    assert "5 of 38 answers of v2 have no score by the judge" in done.err + done.out
    assert "answers of v1 are left out" in done.err + done.out
    assert "33 common documents" in done.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--base", "v3"), "--base v3: no such version"),
        (("--human", "nothing"), "there is no column, and no file, 'nothing'"),
        (("--judge", "nothing"), "nothing"),
        (("-o", "page.txt"), "name it .html"),
    ],
)
def test_wrong_options_are_refused(
    cli: Cli, two: tuple[Path, Path], options: tuple[str, ...], said: str
) -> None:
    cli("compare", *two, *options).refused_at_once(said)


def test_wrong_files_are_refused(
    cli: Cli, two: tuple[Path, Path], tmp_path: Path
) -> None:
    cli("compare", two[0]).refused_at_once("has one version, 'v1'")
    nameless = write(tmp_path / "nameless.jsonl", without(lines(two[0]), "system"))
    cli("compare", nameless).refused_at_once("do not say which version")
    elsewhere = lines(two[1])
    for row in elsewhere:
        row["id"], row["source"] = f"x{row['id']}", f"other {row['source']}"
    apart = write(tmp_path / "apart.jsonl", elsewhere)
    cli("compare", two[0], apart).refused_at_once("no input in common")
    twice = write(tmp_path / "twice.jsonl", [*lines(two[1]), lines(two[1])[0]])
    cli("compare", two[0], twice).refused_at_once("id '0' is that of row")
    unscored = [
        write(tmp_path / f"u{path.name}", without(lines(path), "verdict", "judge"))
        for path in two
    ]
    unrated = [
        write(tmp_path / f"n{path.name}", without(lines(path), "label", "score"))
        for path in unscored
    ]
    cli("compare", *unrated).refused_at_once("no row has a verdict of a judge, nor a")
    three = write(tmp_path / "three.jsonl", history(3))
    cli("compare", three).refused_at_once("name two of them with --base and --new")


def test_inputs_with_other_sources_are_joined_by_id(
    cli: Cli, two: tuple[Path, Path], tmp_path: Path
) -> None:
    rows = lines(two[1])
    for row in rows:
        row["source"] = f"Be kind. {row['source']}"
    done = cli("compare", two[0], write(tmp_path / "prompted.jsonl", rows))
    assert done.code == 0
    assert "answers with the same id count as answers to one input" in " ".join(
        (done.out + done.err).split()
    )


def test_kept_lines_are_checked(
    cli: Cli, bare: tuple[Path, Path], tmp_path: Path
) -> None:
    good = {
        "format": "judgesmith.version/1",
        "version": "e0",
        "id": "1",
        "document": "d",
        "judge": "j",
        "score": 1.0,
        "human": None,
    }
    for wrong, said in (
        (good | {"score": "high"}, "line 2: 'score' is 'high', and no number"),
        (good | {"version": 3}, "line 2: 'version' is missing, or no text"),
        ({"id": "1"}, "line 2: this is no line that `compare --keep` wrote"),
    ):
        path = write(tmp_path / "kept.jsonl", [good, wrong])
        cli("compare", *bare, "--history", path).refused_at_once(said)


def test_the_page(cli: Cli, bare: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    every = write(tmp_path / "history.jsonl", history())
    done = cli("compare", *bare, "--history", every, "-o", page)
    html = page.read_text(encoding="utf-8")
    assert done.out.splitlines()[0][:40] in html
    assert html.count("<svg") == 2
    assert "9 rated versions" in html
    assert "https://" not in html


def test_scores_of_an_unnamed_judge_beside_a_history_are_noted(
    cli: Cli, bare: tuple[Path, Path], tmp_path: Path
) -> None:
    plain = []
    for path in bare:
        rows = lines(path)
        for row in rows:
            row["judge_score"] = row.pop("verdict")["score"]
            row.pop("judge")
        plain.append(write(tmp_path / f"plain_{path.name}", rows))
    every = write(tmp_path / "history.jsonl", history())
    told = cli("compare", *plain, "--history", every, "--json").json
    (note,) = [note for note in told["notes"] if "does not say which judge" in note]
    assert "it is taken for tone.json with openai/some (abc)" in note
    told = cli("compare", *bare, "--history", every, "--json").json
    assert not any("does not say which judge" in note for note in told["notes"])


def test_choices_between_equal_outputs_belong_to_their_inputs(
    cli: Cli, tmp_path: Path
) -> None:
    """Yes and no are the outputs of many questions: people's choice is that of the same question."""
    rows, labels = Rows(), Rows()
    for d in range(24):
        row = {
            "id": str(d),
            "source": f"question {d}",
            "output_a": "Yes",
            "output_b": "No",
            "system_a": "old",
            "system_b": "new",
            "gpt4_winner": "B" if d % 4 else "A",
        }
        rows.append(row)
        labels.append(
            without([row], "gpt4_winner")[0] | {"winner": "B" if d % 3 else "A"}
        )
    scored = write(tmp_path / "scored.jsonl", rows)
    people = write(tmp_path / "people.jsonl", labels)
    words = ("--judge", "gpt4_winner", "--human", people, "--json")
    told = cli("compare", scored, *words).json
    assert told["labelled"] == [24, 24]
    # People chose the new one in 16 of 24: 2/3 - 1/3.
    means = {one["name"]: one["human"] for one in told["versions"]}
    assert means["new"] - means["old"] == pytest.approx(1 / 3, abs=1e-5)
    unnamed = write(tmp_path / "unnamed.jsonl", without(labels, "source", "id"))
    cli(
        "compare", scored, "--judge", "gpt4_winner", "--human", unnamed
    ).refused_at_once("for several inputs")


# A stranger's files -------------------------------------------------------------------------------------------------


def strangers(path: Path, *, judge: bool) -> Path:
    """Write a German spreadsheet of two prompts' answers, shuffled, of which 30 are rated."""
    rng = random.Random(5)
    rows = []
    for n, prompt in itertools.product(range(40), ("alt", "neu")):
        quality = 3 + 0.8 * (prompt == "neu") + rng.gauss(0, 0.5)
        rating = f"{round(2 * quality) / 2:.1f}".replace(".", ",") if n < 15 else ""
        cells = [f"HD-{3000 + n}", prompt, f"Wie kündige ich {n * 37}?"]
        cells += [f"Antwort {prompt} {rng.randint(0, 10**6)}", rating]
        cells += [f"{quality:.2f}".replace(".", ",")] if judge else []
        rows.append(";".join(cells))
    rng.shuffle(rows)
    names = "Ticket-ID;Prompt-Version;Kundenanfrage;Antwort;Bewertung Anna"
    head = f"{names};GPT-Note" if judge else names
    path.write_text("\n".join([head, *rows]), encoding="cp1252")
    return path


@pytest.mark.parametrize("judge", [True, False])
def test_a_strangers_spreadsheet_needs_no_option(
    cli: Cli, tmp_path: Path, judge: bool
) -> None:
    path = strangers(tmp_path / "prompts.csv", judge=judge)
    told = cli("compare", path, "--base", "alt", "--new", "neu", "--json").json
    assert told["verdict"] == "better"
    assert told["sentence"].startswith("neu is better than alt: +0.")
    assert told["sentence"].endswith("by 15 labelled documents of alt and 15 of neu.")
    notes = " ".join(told["notes"])
    assert "human ratings are taken from the column 'Bewertung Anna'" in notes
    if judge:
        assert "the judge's scores are taken from the column 'GPT-Note'" in notes
    else:
        assert "people's ratings alone decide" in notes
    shown = cli("compare", path, "--base", "alt", "--new", "neu").out
    (head,) = (line for line in shown.splitlines() if line.startswith(" version"))
    assert ("judge" in head) is judge


def test_sides_of_a_strangers_comparisons_are_found(cli: Cli, tmp_path: Path) -> None:
    rng = random.Random(1)
    rows = ["Frage;Antwort links;Antwort rechts;Prompt links;Prompt rechts;Besser"]
    for n in range(40):
        sides = ["v1", "v2"]
        rng.shuffle(sides)
        better = "links" if (sides[0] == "v2") == (rng.random() < 0.8) else "rechts"
        rows.append(
            f"Frage {n}?;a {n} {sides[0]};b {n} {sides[1]};{';'.join(sides)};{better}"
        )
    path = tmp_path / "wide.csv"
    path.write_text("\n".join(rows), encoding="utf-8-sig")
    told = cli("compare", path, "--json").json
    assert (told["base"], told["new"], told["verdict"]) == ("v1", "v2", "better")
    assert "taken from the columns 'Prompt links' and 'Prompt rechts'" in " ".join(
        told["notes"]
    )
