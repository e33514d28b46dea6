"""`judgesmith check`: one true sentence first, how the file was read, what more labels buy, and gates tested again."""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

Rows = Sequence[dict[str, Any]]


def written(folder: Path, rows: Rows, name: str = "rows.csv") -> Path:
    """Write rows of different texts as a CSV."""
    path = folder / name
    with path.open("w", newline="", encoding="utf-8") as file:
        fields = {"id": None, "source": None, "output": None}
        for row in rows:
            fields |= dict.fromkeys(row)
        writer = csv.DictWriter(file, list(fields))
        writer.writeheader()
        for i, row in enumerate(rows):
            texts = {
                "source": f"Question {i * 7919}?",
                "output": f"Answer {i * 104729}",
            }
            writer.writerow({"id": f"r{i}"} | texts | row)
    return path


def decided(
    found: int, missed: int, wrong: int, right: int, **more: Any
) -> list[dict[str, Any]]:
    """Rows that people failed and the judge failed, then passed; that people passed and it failed, then passed."""
    cells = [("fail", "fail")] * found + [("fail", "pass")] * missed
    cells += [("pass", "fail")] * wrong + [("pass", "pass")] * right
    return [{"label": people, "gpt4": judge} | more for people, judge in cells]


def first(cli: Any, path: Path, *more: str) -> dict[str, Any]:
    """Return the first answer, which is also the first line on the screen."""
    words = ("check", path, "--human", "label", "--judge", "gpt4", *more)
    answer: dict[str, Any] = cli(*words, "--json").told["answers"][0]
    said = cli(*words).said
    assert " ".join(said.split()).startswith(
        f"{answer['found']} {answer['advice']}".rstrip()
    )
    return answer


# Pass and fail ----------------------------------------------------------------------------------------------------


def test_a_judge_that_misses_fails_may_not_decide_alone(
    cli: Any, tmp_path: Path
) -> None:
    answer = first(cli, written(tmp_path, decided(11, 12, 2, 55)))
    # 12 of 23 = 52 %; Wilson's interval is 33 to 71 %
    assert answer["found"].startswith(
        "Of 23 answers that people failed, gpt4 passed 12: 52% [3"
    )
    assert answer["advice"] == "Do not let it decide alone."
    assert answer["may_decide"] is False
    facts = " ".join(answer["facts"])
    assert "It finds 48% [" in facts
    assert "passes 96% [" in facts
    assert "(TPR)" in facts
    assert "Cohen's kappa 0.5" in facts
    assert "always saying 'pass' would on 71%" in facts  # 57 of 80


def test_a_judge_that_is_surely_above_the_bar_may_decide(
    cli: Any, tmp_path: Path
) -> None:
    path = written(tmp_path, decided(58, 2, 2, 98))
    answer = first(cli, path)
    assert answer["advice"] == (
        "It may decide alone on answers like these, if 20% of fails and of passes may be wrong."
    )
    assert answer["may_decide"] is True
    answer = first(cli, path, "--bar", "0.95")
    assert answer["may_decide"] is None
    assert "too few to say whether it may decide alone" in answer["advice"]


def test_few_labels_say_how_many_more_would_tell(cli: Any, tmp_path: Path) -> None:
    answer = first(cli, written(tmp_path, decided(2, 1, 1, 6)))
    assert answer["found"].startswith(
        "Of 3 answers that people failed, gpt4 passed 1: 33% ["
    )
    assert answer["advice"].startswith("10 labels are too few to say whether")
    assert answer["advice"].endswith("more would tell.")
    assert answer["may_decide"] is None


@pytest.mark.parametrize(
    "counts, says",
    [
        ((0, 12, 0, 28), "gpt4 passed all 40 answers, 12 of them where people did not"),
        ((12, 0, 28, 0), "gpt4 failed all 40 answers, 28 of them where people did not"),
    ],
)
def test_a_judge_that_always_says_the_same_tells_nothing_apart(
    cli: Any, tmp_path: Path, counts: tuple[int, ...], says: str
) -> None:
    answer = first(cli, written(tmp_path, decided(*counts)))
    assert answer["found"] == f"{says}: it tells nothing apart."
    assert answer["advice"] == "Do not let it decide."


def test_other_words_than_pass_and_fail_are_peoples_own(
    cli: Any, tmp_path: Path
) -> None:
    rows = decided(10, 10, 2, 18)
    for row in rows:
        for side in ("label", "gpt4"):
            row[side] = {"fail": "bad", "pass": "good"}[row[side]]
    answer = first(cli, written(tmp_path, rows))
    assert answer["found"].startswith(
        "Of 20 answers that people called 'bad', gpt4 called 'good' 10: 50%"
    )


def test_a_judge_without_a_verdict_on_the_fails_cannot_be_told(
    cli: Any, tmp_path: Path
) -> None:
    rows = decided(6, 0, 2, 20)
    for row in rows[:6]:
        row["gpt4"] = ""
    answer = first(cli, written(tmp_path, rows))
    assert answer["found"] == (
        "Of 22 answers, people failed none: nothing here says whether gpt4 finds what is wrong."
    )


def test_several_judges_each_have_a_sentence(cli: Any, tmp_path: Path) -> None:
    rows = decided(11, 12, 2, 55)
    for n, row in enumerate(rows):
        row["other"] = row["label"] if n % 9 else "pass"
    path = written(tmp_path, rows)
    words = ("check", path, "--human", "label", "--judge", "gpt4", "--judge", "other")
    gpt4, other, both = cli(*words, "--json").told["answers"]
    assert (gpt4["judge"], other["judge"]) == ("gpt4", "other")
    assert other["found"].startswith(
        "Of 23 answers that people failed, other passed 3: 13%"
    )
    assert both["found"].startswith("Of 2 judges, other agrees best")


def test_raters_who_do_not_agree_leave_nothing_to_say(cli: Any, tmp_path: Path) -> None:
    rng = random.Random(3)
    rows = [
        {"ann": rng.randint(1, 5), "bo": rng.randint(1, 5), "gpt4": rng.randint(1, 5)}
        for _ in range(60)
    ]
    path = written(tmp_path, rows)
    words: list[Any] = ["check", path, "--judge", "gpt4", "--json"]
    for name in ("ann", "bo"):
        words += ["--columns", f"rater_score={name}"]
    (answer,) = cli(*words).told["answers"]
    assert answer["found"].startswith("The raters do not agree beyond chance")
    assert answer["advice"] == ""
    assert answer["may_decide"] is None


def test_two_raters_of_pass_and_fail_are_the_ceiling(cli: Any, tmp_path: Path) -> None:
    rng = random.Random(0)
    rows = []
    for _ in range(60):
        truth = rng.random() < 0.6
        said = [truth if rng.random() < 0.9 else not truth for _ in range(3)]
        words = ["pass" if one else "fail" for one in said]
        rows.append(dict(zip(("ann", "bo", "gpt4"), words, strict=True)))
    equal = sum(row["ann"] == row["bo"] for row in rows)
    path = written(tmp_path, rows)
    given: list[Any] = ["check", path, "--judge", "gpt4", "--json"]
    for name in ("ann", "bo"):
        given += ["--columns", f"rater_score={name}"]
    (answer,) = cli(*given).told["answers"]
    assert f"two people agree on {100 * equal / 60:.0f}% [" in " ".join(answer["facts"])


# Categories, preferences, scores ----------------------------------------------------------------------------------


def test_categories_are_counted_in_peoples(cli: Any, tmp_path: Path) -> None:
    words = ("poor", "fair", "good")
    rows = [
        {"label": words[n % 3], "gpt4": words[(n + (n % 10 == 0)) % 3]}
        for n in range(60)
    ]
    answer = first(cli, written(tmp_path, rows))
    assert answer["found"].startswith(
        "Of 60 answers, gpt4 put 54 in people's category: 90% ["
    )
    assert "may decide alone" in answer["advice"] or "too few" in answer["advice"]
    for n, row in enumerate(rows):
        row["gpt4"] = words[(n // 3) % 3]
    answer = first(cli, written(tmp_path, rows))
    assert "cannot tell it from always saying" in answer["advice"]
    assert answer["may_decide"] is None


def test_preferences_are_counted_where_people_had_one(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    lines = ["id,source,output_a,output_b,winner,gpt4_winner"]
    for n in range(40):
        people = "tie" if n % 10 == 9 else "AB"[n % 2]
        judge = people if n % 6 else "B"
        lines.append(
            f"p{n},Question {n * 7919}?,One {n * 31},Two {n * 17},{people},{judge}"
        )
    path.write_text("\n".join(lines), encoding="utf-8")
    same = sum(line.split(",")[-2:] in (["A", "A"], ["B", "B"]) for line in lines[1:])
    told = cli("check", path, "--judge", "gpt4_winner", "--json").told
    assert told["read"]["ratings"] == {"overall": ["winner"]}
    assert "score" not in told["read"]["look_like_ratings"]
    named = ("--human", "winner", "--judge", "gpt4_winner", "--json")
    assert cli("check", path, *named).told["answers"] == told["answers"]
    (answer,) = told["answers"]
    assert answer["found"].startswith(
        f"Of 36 comparisons that people decided, gpt4_winner chose the same side in {same}: "
    )


def scores(rng: random.Random, n: int, noise: float) -> list[dict[str, Any]]:
    """Rows with a rating of 1 to 5, and a judge's score beside it."""
    rows = []
    for _ in range(n):
        truth = rng.gauss(3, 1)
        rating, judge = (
            min(5, max(1, round(truth + rng.gauss(0, sd)))) for sd in (0.3, noise)
        )
        rows.append({"label": rating, "gpt4": judge})
    return rows


def test_scores_are_told_in_pairs_of_answers(cli: Any, tmp_path: Path) -> None:
    rows = scores(random.Random(0), 80, 0.6)
    answer = first(cli, written(tmp_path, rows))
    better = total = 0.0
    for a in rows:
        for b in rows:
            if a["label"] > b["label"]:
                total += 1
                better += (a["gpt4"] > b["gpt4"]) + (a["gpt4"] == b["gpt4"]) / 2
    assert answer["found"].startswith(
        "Of two answers that people rated differently, gpt4 scores the better one higher in "
        f"{100 * better / total:.0f}% ["
    )
    assert answer["advice"].startswith("It may sort answers like these")
    assert "Spearman" in answer["facts"][0]
    assert "A single score is off by" in answer["facts"][1]


def test_scores_that_guess_run_against_people_or_never_change(
    cli: Any, tmp_path: Path
) -> None:
    rng = random.Random(1)
    rows = scores(rng, 60, 0.6)
    for row in rows:
        row["gpt4"] = rng.randint(1, 5)
    answer = first(cli, written(tmp_path, rows))
    assert (
        "60 labels are too few to tell it from a judge that guesses" in answer["advice"]
    )
    for row in rows:
        row["gpt4"] = 6 - row["label"]
    answer = first(cli, written(tmp_path, rows))
    assert answer["advice"] == "It runs against people: do not let it decide."
    for row in rows:
        row["gpt4"] = 3
    answer = first(cli, written(tmp_path, rows))
    assert answer["found"] == "gpt4 gave all 60 answers 3: it tells nothing apart."


# Reading ----------------------------------------------------------------------------------------------------------


def test_columns_are_read_aloud_and_rows_left_out_are_named(
    cli: Any, tmp_path: Path
) -> None:
    rows = decided(11, 12, 2, 55, lang="de")
    rows[3]["label"] = ""
    rows[5]["gpt4"] = ""
    for n, row in enumerate(rows):
        row["Stars"] = 1 + n % 5
    path = written(tmp_path, rows)
    words = ("check", path, "--human", "label", "--judge", "gpt4")
    read = cli(*words, "--json").told["read"]
    assert read["ratings"] == {"label": ["label"]}
    assert read["look_like_ratings"] == ["Stars"]
    assert read["not_used"] == ["lang"]
    assert read["left_out"] == {
        "without a human rating": ["r3"],
        "that gpt4 gave no verdict on": ["r5"],
    }
    said = " ".join(cli(*words).said.split())
    assert "Read: human ratings from 'label', judge 'gpt4'" in said
    assert "Not used, but could be ratings: 'Stars'" in said
    assert "Left out: 1 row without a human rating (r3)." in said


def test_a_guess_between_two_columns_stops(cli: Any, tmp_path: Path) -> None:
    rows = [
        {"Rating A": 1 + n % 5, "Rating B": 1 + n % 4, "gpt4": n % 5} for n in range(20)
    ]
    done = cli("check", written(tmp_path, rows), "--judge", "gpt4")
    done.refused("it could be one of: Rating A, Rating B")


def test_the_old_name_stays(cli: Any, tmp_path: Path) -> None:
    path = written(tmp_path, decided(11, 12, 2, 55))
    words = (path, "--human", "label", "--judge", "gpt4", "--json")
    assert cli("evaluate", *words).told == cli("check", *words).told
    assert "evaluate " not in cli("--help").said


# Plans, pass rates, baselines -------------------------------------------------------------------------------------


def test_a_plan_tells_widths_and_the_power_of_gates(cli: Any, tmp_path: Path) -> None:
    path = written(tmp_path, decided(11, 12, 2, 55))
    words = ("check", path, "--human", "label", "--judge", "gpt4", "--plan")
    told = cli(*words, "--json").told
    found = {one["what"]: one for one in told["plan"]["precision"]}
    widths = found["fails found"]["half_width"]
    assert widths["320"] == pytest.approx(widths["80"] / 2)
    assert [gate.split(" passes ")[1][:8] for gate in told["plan"]["gates"]] == [
        "tnr>=0.8",
        "tpr>=0.8",
    ]
    said = cli(*words).said
    assert "What more labels would buy" in said
    rows = scores(random.Random(0), 40, 0.6)
    path = written(tmp_path, rows)
    words = ("check", path, "--human", "label", "--judge", "gpt4", "--plan")
    (gate,) = cli(*words, "--json", "--fail-under", "spearman>=0.4").json["plan"][
        "gates"
    ]
    assert gate.startswith(
        "A judge of true Spearman ρ 0.6 passes spearman>=0.4 with these 40 labels in "
    )
    now, later = re.findall(r" in (\d+)%", gate)
    assert int(now) < 50 < 75 < int(later)
    (gain,) = cli(*words, "--json").json["plan"]["gains"]
    assert (gain["judge"], gain["labels"]) == ("gpt4", 40)
    at = {labels: one["value"] for labels, one in gain["gains"].items()}
    assert at["200"] == pytest.approx(at["40"] * 3)  # 200 / 400 over 40 / 240
    assert "gpt4, label: Beside this judge (Q " in " ".join(cli(*words).said.split())


def test_the_pass_rate_of_all_rows_is_a_gate(cli: Any, tmp_path: Path) -> None:
    """400 rows, 80 of them labelled: the judge passes half of the fails."""
    rng = random.Random(0)
    rows = []
    for n in range(400):
        good = rng.random() < 0.7
        judge = good or rng.random() < 0.5
        people = ("pass" if good else "fail") if n < 80 else ""
        rows.append({"label": people, "gpt4": "pass" if judge else "fail"})
    path = written(tmp_path, rows)
    words = ("check", path, "--human", "label", "--judge", "gpt4", "--json")
    done = cli(*words, "--fail-under", "rate>=0.55")
    assert done.code == 0
    (rate,) = done.told["pass_rates"]
    assert (rate["labels"], rate["rows"]) == (80, 400)
    assert rate["low"] < 0.7 < rate["high"]
    assert rate["judge_passes"] > 0.8
    done = cli(*words, "--fail-under", "rate>=0.75")
    assert done.code == 1
    assert "pass rate of all rows is" in done.err
    cli(*words, "--fail-under", "rate>=1.5").refused("rate lies in 0..1")


def test_rows_drawn_with_unequal_chances_have_a_pass_rate_and_no_advice(
    cli: Any, tmp_path: Path
) -> None:
    """All that the judge fails, and a fifth of what it passes: of the labels half pass, of all rows .7."""
    rng = random.Random(0)
    rows = []
    for _ in range(500):
        good = rng.random() < 0.7
        judge = good if rng.random() < 0.9 else not good
        chance = 0.2 if judge else 1.0
        drawn = rng.random() < chance
        label = ("pass" if good else "fail") if drawn else ""
        verdict = "pass" if judge else "fail"
        rows.append({"label": label, "gpt4": verdict, "chance": chance})
    path = written(tmp_path, rows)
    answer = first(cli, path, "--probability", "chance")
    assert "were drawn with unequal probabilities ('chance')" in answer["advice"]
    assert answer["may_decide"] is None
    words = ("check", path, "--human", "label", "--judge", "gpt4", "--json")
    (rate,) = cli(*words, "--probability", "chance").told["pass_rates"]
    assert rate["low"] < 0.7 < rate["high"]
    labelled = [row for row in rows if row["label"]]
    every = written(tmp_path, labelled, "labelled.csv")
    gate = ("--probability", "chance", "--fail-under", "tnr>=0.5")
    cli(*words, *gate).refused("only rate, and those of --anytime, weigh them")
    words = ("check", every, "--human", "label", "--judge", "gpt4", "--json")
    cli(*words, "--probability", "chance").refused("give the file of all rows")
    cli(*words, "--probability", "lang").refused("'lang'")


def test_a_gate_that_was_passed_is_tested_only_against_itself(
    cli: Any, tmp_path: Path
) -> None:
    rows = decided(40, 6, 4, 50)
    baseline = tmp_path / "baseline.json"
    words: tuple[Any, ...] = (
        "--human",
        "label",
        "--judge",
        "gpt4",
        "--baseline",
        baseline,
    )
    gate = ("--fail-under", "accuracy>=0.8")
    path = written(tmp_path, rows)
    done = cli("check", path, *words, *gate)
    assert done.code == 0
    assert "Wrote" in done.out
    kept = json.loads(baseline.read_text(encoding="utf-8"))
    assert kept["gates"] == ["accuracy>=0.8"]
    assert len(kept["decided"]["label"]) == 100
    # Three further errors: afresh the gate would fail, against itself it is no more than chance.
    for row in rows[50:53]:
        row["gpt4"] = "fail"
    path = written(tmp_path, rows)
    assert cli("check", path, *words[:4], *gate).code == 1
    done = cli("check", path, *words, *gate)
    assert done.code == 0, done.err
    assert "since the baseline, on 100 rows: not surely worse" in " ".join(
        done.out.split()
    )
    # Twenty are beyond chance, at .05 / 50.
    for row in rows[50:70]:
        row["gpt4"] = "fail"
    done = cli("check", written(tmp_path, rows), *words, *gate)
    assert done.code == 1
    assert "worse, p < .001 (" in done.err


def test_a_gate_on_scores_is_tested_against_itself_too(
    cli: Any, tmp_path: Path
) -> None:
    rng = random.Random(0)
    rows = scores(rng, 120, 0.5)
    baseline = tmp_path / "baseline.json"
    words = ("--human", "label", "--judge", "gpt4", "--baseline", baseline)
    gate = ("--fail-under", "spearman>=0.6")
    assert cli("check", written(tmp_path, rows), *words, *gate).code == 0
    done = cli("check", written(tmp_path, rows), *words, *gate)
    assert done.code == 0
    assert "+0.000 since the baseline, on 120 rows: no change" in " ".join(
        done.out.split()
    )
    for row in rows:
        row["gpt4"] = rng.choice([row["gpt4"], rng.randint(1, 5)])
    done = cli("check", written(tmp_path, rows), *words, *gate)
    assert done.code == 1
    assert "Spearman" in done.err


def test_a_gate_that_a_baseline_cannot_tell_is_put_to_the_test_afresh(
    cli: Any, tmp_path: Path
) -> None:
    """A pass rate that falls is no loss of agreement: it must not pass by a baseline."""
    baseline = tmp_path / "baseline.json"
    words = ("--human", "label", "--judge", "gpt4", "--baseline", baseline)
    gate = ("--fail-under", "rate>=0.5")
    good = written(tmp_path, decided(20, 2, 2, 76))
    assert cli("check", good, *words, *gate).code == 0
    bad = written(tmp_path, decided(76, 2, 2, 20))
    done = cli("check", bad, *words, *gate)
    assert done.code == 1
    assert "pass rate of all rows is 0.220" in done.err


def test_a_baseline_does_not_excuse_rows_without_a_verdict(
    cli: Any, tmp_path: Path
) -> None:
    rows = decided(40, 6, 4, 50)
    baseline = tmp_path / "baseline.json"
    words = ("--human", "label", "--judge", "gpt4", "--baseline", baseline)
    gates = ("--fail-under", "accuracy>=0.8", "--min-coverage", 0.9)
    assert cli("check", written(tmp_path, rows), *words, *gates).code == 0
    for row in rows[::3]:
        row["gpt4"] = None
    done = cli("check", written(tmp_path, rows), *words, *gates)
    assert done.code == 1
    assert "rests on 66 of 100 rows" in done.err


def test_a_baseline_is_of_one_judge(cli: Any, tmp_path: Path) -> None:
    rows = [row | {"claude": row["gpt4"]} for row in decided(40, 6, 4, 50)]
    baseline = tmp_path / "baseline.json"
    path = written(tmp_path, rows)
    words = ("--human", "label", "--baseline", baseline, "--fail-under", "kappa>=0.5")
    assert cli("check", path, *words, "--judge", "gpt4").code == 0
    again = " ".join(cli("check", path, *words, "--judge", "gpt4").out.split())
    assert "accuracy (for weighted kappa)" in again
    cli("check", path, *words, "--judge", "claude").refused(
        "judge 'gpt4' passed the gates then", "'claude'"
    )


def test_a_baseline_that_is_none_or_of_other_rows_is_refused(
    cli: Any, tmp_path: Path
) -> None:
    rows = decided(40, 6, 4, 50)
    baseline = tmp_path / "baseline.json"
    words = ("--human", "label", "--judge", "gpt4", "--baseline", baseline)
    gate = ("--fail-under", "accuracy>=0.5")
    baseline.write_text("{}", encoding="utf-8")
    cli("check", written(tmp_path, rows), *words, *gate).refused(
        "is no baseline", "delete it"
    )
    baseline.unlink()
    assert cli("check", written(tmp_path, rows), *words, *gate).code == 0
    others = [row | {"id": f"other{n}"} for n, row in enumerate(rows)]
    cli("check", written(tmp_path, others), *words, *gate).refused(
        "0 labelled rows are in this run"
    )


# Looking after every label ----------------------------------------------------------------------------------------


def test_labels_may_be_looked_at_one_by_one(cli: Any, tmp_path: Path) -> None:
    rows = decided(0, 0, 0, 40)
    words = ("--human", "label", "--judge", "gpt4", "--anytime", "--fail-under")
    for n, row in enumerate(rows):
        row["labelled_at"] = (
            f"2026-11-28T10:{59 - n:02}:00+00:00"  # the last row came first
        )
        row["gpt4"] = "fail" if n < 5 else "pass"
    rows[39]["label"] = rows[39]["gpt4"] = "fail"
    path = written(tmp_path, rows)
    # (.9 / .8) ** 26 = 21.4 > 20: 26 right answers suffice, in the order in which they came
    done = cli("check", path, *words, "accuracy>=0.8")
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "accuracy>=0.8 is passed: 26 of 40 labels that it counts sufficed" in said
    assert "in the order in which they were given" in said
    for row in rows:
        del row["labelled_at"]  # now the five wrong ones come first: 2 ** 4 > 10
    done = cli("check", written(tmp_path, rows), *words, "accuracy>=0.8")
    assert done.code == 1
    assert "is not passed: 4 of 40 labels" in done.err
    done = cli(
        "check", written(tmp_path, rows[5:20] + rows[39:]), *words, "accuracy>=0.8"
    )
    assert done.code == 1
    assert "is open after 16 labels that it counts; about 10 more decide it" in done.err


def test_rows_without_a_verdict_are_counted_when_looked_at_one_by_one(
    cli: Any, tmp_path: Path
) -> None:
    """A judge that leaves out what it finds hard is right on the rest."""
    rows = decided(0, 0, 0, 60)
    rows[59]["label"] = rows[59]["gpt4"] = "fail"
    for row in rows[:30]:
        row["gpt4"] = None
    words = ("--human", "label", "--judge", "gpt4", "--anytime", "--fail-under")
    done = cli("check", written(tmp_path, rows), *words, "accuracy>=0.8")
    assert done.code == 1
    assert "rests on 30 of 60 rows, coverage 50.0% is below 95.0%" in done.err
    less = (*words, "accuracy>=0.8", "--min-coverage", 0.5)
    assert cli("check", written(tmp_path, rows), *less).code == 0


def test_gates_without_a_sequential_test_are_refused_with_the_reason(
    cli: Any, tmp_path: Path
) -> None:
    path = written(tmp_path, decided(11, 12, 2, 55))
    words = ("check", path, "--human", "label", "--judge", "gpt4", "--anytime")
    cli(*words).refused("--anytime needs --fail-under")
    cli(*words, "--fail-under", "way>=0.4").refused("is a ratio of two agreements")
    cli(*words, "--fail-under", "system.spearman>=0.4").refused("labels add no systems")
    cli(*words, "--fail-under", "acc_eq>=0.4").refused("its epsilon is fitted")
    cli(*words, "--fail-under", "tnr>=1").refused("the bar is not between 0 and 1")


def test_correlations_kappa_errors_and_the_pass_rate_may_be_looked_at_one_by_one(
    cli: Any, tmp_path: Path
) -> None:
    rng = random.Random(1)
    rows: list[dict[str, Any]] = []
    for _ in range(80):
        score = rng.randint(1, 5)
        near = min(5, max(1, score + rng.choice((-1, 0, 0, 1))))
        rows.append({"label": score, "gpt4": near})
    words = ("--human", "label", "--judge", "gpt4", "--anytime", "--fail-under")
    path = written(tmp_path, rows)
    for gate in ("spearman>=0.5", "kendall>=0.3", "q>=1", "mae<=1"):
        done = cli("check", path, *words, gate)
        said = " ".join(done.out.split())
        assert f"{gate} is passed: " in said, (gate, said)
        assert "a judge at the bar passes in about 5%" in said
    done = cli("check", path, *words, "spearman>=0.95")
    assert done.code == 1
    assert "spearman>=0.95 is not passed: 2" in done.err  # not before 20 labels
    few = written(tmp_path, rows[:19], "few.csv")
    done = cli("check", few, *words, "spearman>=0.5")
    assert "spearman>=0.5 is open after 19 labels" in done.err
    verdicts = decided(70, 8, 8, 114)
    rng.shuffle(verdicts)
    path = written(tmp_path, verdicts, "verdicts.csv")
    for gate in ("rate>=0.3", "cohen-kappa>=0.4", "auc>=0.6"):
        done = cli("check", path, *words, gate)
        assert f"{gate} is passed: " in " ".join(done.out.split()), done.err


def test_a_number_below_zero_keeps_its_sign_and_an_error_has_none(
    cli: Any, tmp_path: Path
) -> None:
    rng = random.Random(1)
    rows: list[dict[str, Any]] = []
    for _ in range(40):
        score = rng.randint(1, 5)
        away = min(5, max(1, 6 - score + rng.choice((-1, 0, 0, 1))))
        rows.append({"label": score, "gpt4": away})
    path = written(tmp_path, rows)
    words = ("check", path, "--human", "label", "--judge", "gpt4", "--anytime")
    done = cli(*words, "--fail-under", "spearman>=-0.5")
    assert "it is -0.8" in " ".join(done.err.split())
    assert "one of -0.3 fails" in " ".join(done.err.split())
    done = cli(*words, "--fail-under", "mae<=0.5")
    assert "it is 2." in " ".join(done.err.split())
    assert "one of 0.25 fails" in " ".join(done.err.split())


def test_labels_of_a_file_beside_are_joined_with_their_chances(
    cli: Any, tmp_path: Path
) -> None:
    """Twelve of the judge's passes and all of its fails are labelled; people pass .5 of what it fails, all others."""
    rows = decided(10, 0, 10, 60)
    path = written(tmp_path, [{"gpt4": row["gpt4"]} for row in rows])
    labels = tmp_path / "labels.jsonl"
    lines = []
    for n, row in enumerate(rows[:32]):
        chance = 1.0 if row["gpt4"] == "fail" else 0.2
        own = {"id": f"r{n}", "score": row["label"], "label_chance": chance}
        lines.append(json.dumps(own | {"output": f"Answer {n * 104729}"}))
    labels.write_text("\n".join(lines))
    told = cli("check", path, "--human", labels, "--judge", "gpt4", "--json").json
    (rate,) = told["pass_rates"]
    assert rate["labels"] == 32
    assert rate["value"] == pytest.approx(70 / 80)  # (10 + 60) of 80
    assert "label_chance" in told["answers"][0]["advice"]
    estimate = cli("estimate", path, "--human", labels, "--judge", "gpt4", "--json")
    (system,) = estimate.json["systems"].values()
    assert system["mean"] == pytest.approx(70 / 80)
    file = tmp_path / "certificate.json"
    beside = ("--human", labels, "--judge", "gpt4", "--certificate", file)
    assert cli("check", path, *beside).code == 0
    people = json.loads(file.read_text(encoding="utf-8"))["people"]
    assert people["drawn"] == "as one column says"
    gate = ("--anytime", "--fail-under", "tpr>=0.6")
    done = cli("check", path, "--human", labels, "--judge", "gpt4", *gate)
    # by strata, 60 of 70; without weights it would be 12 of 22
    assert "it is 0.86 by them" in " ".join(done.said.split()) + done.err
    others = tmp_path / "others.jsonl"
    others.write_text(lines[0])
    words = ("check", path, "--human", others, "--human", labels, "--judge", "gpt4")
    cli(*words).refused("give one file of labels")
    labels.write_text(lines[0].replace("1.0", "1.5"))
    cli("check", path, "--human", labels, "--judge", "gpt4").refused(
        "'1.5' is no probability"
    )


# Certificates -----------------------------------------------------------------------------------------------------


def test_a_certificate_says_whose_labels_which_rows_and_the_rules_error(
    cli: Any, tmp_path: Path
) -> None:
    rows = decided(58, 2, 2, 98)
    rows.append({"label": "", "gpt4": "pass", "output": "word " * 200})
    path = written(tmp_path, rows)
    words = ("check", path, "--human", "label", "--judge", "gpt4")
    page = tmp_path / "certificate.html"
    file = tmp_path / "certificate.json"
    gates = ("--fail-under", "tnr>=0.8", "--fail-under", "tpr>=0.8")
    assert f"Wrote {file}" in cli(*words, *gates, "--certificate", file).said.replace(
        "\n", ""
    )
    told = json.loads(file.read_text(encoding="utf-8"))
    assert told["answers"][0]["may_decide"] is True
    assert told["people"]["labels"] == 160
    assert told["people"]["left out"] == {"without a human rating": 1}
    assert told["people"]["drawn"] == "not known to be at random"
    assert len(told["judge"]["verdicts_sha256"]) == 64
    figures = {one["figure"]: one for one in told["figures"]}
    assert figures["label: TNR (recall for fail)"]["value"] == pytest.approx(58 / 60)
    assert told["rule"]["rule"] == "tnr>=0.8, tpr>=0.8"
    assert told["rule"]["passed"] is True
    assert told["rule"]["false passes"].startswith(
        "at most 2.5% for a judge at the bar"
    )
    assert told["rule"]["power"][0].startswith(
        "A judge of true tnr 0.9 passes tnr>=0.8"
    )
    assert told["rows"] == {
        "like": "outputs of 2 to 2 words; sources of 2 to 2 words",
        "outside": ["r160"],
    }
    assert cli(*words, "--certificate", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "It may decide alone on answers like these" in text
    assert "Outside are 1 row of this file: r160." in text
    assert "http://" not in text
    cli(*words, "--certificate", "page.pdf").refused("name it .html or .json")


def test_a_certificate_tells_the_error_of_the_rule_that_was_used(
    cli: Any, tmp_path: Path
) -> None:
    path = written(tmp_path, decided(58, 2, 2, 98))
    file = tmp_path / "certificate.json"
    baseline = tmp_path / "baseline.json"
    words = ("check", path, "--human", "label", "--judge", "gpt4")
    words += ("--fail-under", "accuracy>=0.8", "--certificate", file)

    def told(*more: Any) -> str:
        assert cli(*words, *more).code == 0
        rule = json.loads(file.read_text(encoding="utf-8"))["rule"]
        return str(rule["false passes"])

    assert told().endswith("looked at once on fresh labels")
    assert told("--anytime").startswith("at most 5% for a judge at the bar, looked")
    assert told("--baseline", baseline).endswith("looked at once on fresh labels")
    assert told("--baseline", baseline).endswith("agreeing less than in that run")


def test_nothing_may_decide_alone_on_rows_that_it_leaves_out(
    cli: Any, tmp_path: Path
) -> None:
    rows = decided(58, 2, 2, 98)
    words = ("check", "--human", "label", "--judge", "gpt4", "--json")
    (told,) = cli(*words, written(tmp_path, rows)).json["answers"]
    assert told["may_decide"] is True
    for row in rows[::8]:
        row["gpt4"] = None
    (told,) = cli(*words, written(tmp_path, rows)).json["answers"]
    assert told["may_decide"] is None
    assert "gpt4 gave no verdict on 20 of 160 rated answers" in told["advice"]


def test_a_certificate_names_raters_and_their_ceiling(cli: Any, tmp_path: Path) -> None:
    rows = decided(11, 12, 2, 55)
    for row in rows:
        row["ann"] = row["label"]
        row["bo"] = row["gpt4"] if row["label"] == "fail" else row["label"]
    path = written(tmp_path, rows)
    file = tmp_path / "certificate.json"
    words: list[Any] = ["check", path, "--judge", "gpt4", "--certificate", file]
    for name in ("ann", "bo"):
        words += ["--columns", f"rater_score={name}"]
    assert cli(*words).code == 0
    told = json.loads(file.read_text(encoding="utf-8"))
    assert told["people"]["ratings from"] == "ann, bo"
    assert any(key.startswith("ceiling, overall pooled") for key in told["people"])
