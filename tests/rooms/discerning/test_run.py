"""`judgesmith discern`: judges that are blind in known ways, on a real server; files, resuming, weights, the page."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from json_lines import write
from tables import table

from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.testing.scripted import PROBE

TOWNS = [
    "Ashford",
    "Barrow",
    "Corby",
    "Dover",
    "Epsom",
    "Falmouth",
    "Gosport",
    "Harlow",
    "Ilkeston",
    "Jarrow",
    "Kendal",
    "Leeds",
    "Malton",
    "Newark",
    "Otley",
]
PEOPLE = [
    "Anna",
    "Bert",
    "Clara",
    "Dan",
    "Emma",
    "Fred",
    "Gina",
    "Hugo",
    "Iris",
    "John",
    "Kate",
    "Liam",
    "Mona",
    "Nick",
    "Olga",
]


def story(i: int) -> str:
    town, who = TOWNS[i], PEOPLE[i]
    return (
        f"The council of {town} met again on Monday with {who} Miller in the chair. It was decided to buy {i + 11} new "
        f"trees for the park, because the old ones are ill. The people of {town} were told that the work is to begin "
        f"in spring. A walk through the park will not be possible for {i + 2} weeks."
    )


STORIES = [story(i) for i in range(len(TOWNS))]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Good texts with ids r000…, as outputs."""
    rows = [
        {"id": f"r{i:03d}", "source": f"Minutes of {TOWNS[i]}.", "output": s}
        for i, s in enumerate(STORIES)
    ]
    return write(tmp_path / "good.jsonl", rows)


@pytest.fixture
def discern(cli: Any, server: Any) -> Callable[..., Any]:
    def run(*arguments: object, rounds: int = 0) -> Any:
        return cli("discern", *arguments, "--api-base", server.base, "--rounds", rounds)

    return run


@pytest.fixture
def discerned(discern: Any, judge_file: Path, texts: Path) -> Callable[..., Any]:
    """discerned("--perturb", …): by the saved judge, of the good texts."""
    return lambda *arguments: discern(judge_file, texts, *arguments)


@pytest.fixture
def saying(server: Any, fake: Any) -> Callable[..., None]:
    """saying(answer): the server's model says `answer(ask)`, but for what finds out its abilities."""

    def say(answer: Callable[[Any], str]) -> None:
        server.answer = lambda ask: (
            fake.sensible(ask) if PROBE in ask.last else answer(ask)
        )

    return say


@pytest.fixture
def answering(saying: Any) -> Callable[..., None]:
    """answering(score): the server's model scores a judged text by `score`."""
    return lambda score: saying(
        lambda ask: f"Explanation: Seen.\nScore: {round(score(ask.judged))}"
    )


def sees(report: Any, name: str) -> str:
    (line,) = (p for p in report["perturbations"] if p["perturbation"] == name)
    return str(line["sees"])


# -- judges that are blind in known ways


def test_a_judge_that_knows_the_texts_notices_all_and_is_alarmed_by_all(
    discerned: Any, answering: Any
) -> None:
    answering(lambda text: 90 if text in STORIES else 20)
    report = discerned(
        "--perturb", "degradation", "--perturb", "invariance", "--json"
    ).json
    assert report["false_alarms"] == 1
    assert "lowers its score without need for style, case" in report["conclusion"]
    tried = [
        p
        for p in report["perturbations"]
        if p["n"] >= 10 and p["kind"] == "degradation"
    ]
    assert len(tried) >= 20
    assert {p["sees"] for p in tried if p["perturbation"] != "random-answer"} == {"yes"}
    # with 15 texts, all with the same drop: p = 2**-15, D = 15 ln 2 / ln 20
    typos = next(p for p in tried if p["perturbation"] == "typos:minor")
    assert (
        typos["n"],
        typos["mean_change"],
        typos["share_changed"],
        typos["effect"],
    ) == (15, 70, 1, 1)
    assert typos["p"] == pytest.approx(0.5**15) == typos["p_floor"]
    assert typos["d"] == pytest.approx(15 * math.log(2) / math.log(20))
    # another document's good text is a good text to this judge, which does not look at the source
    assert sees(report, "random-answer") == "no"
    assert report["ours"]["normalised"]["worst"] == "random-answer"
    assert report["ours"]["normalised"]["d_min"] == 0
    assert report["normalised"]["d_min"] == pytest.approx(
        15 * math.log(2) / math.log(20)
    )  # of the paper's alone
    assert "blind to random-answer" in report["conclusion"]


def test_a_judge_of_length_is_blind_to_order_and_alarmed_by_length(
    discerned: Any, answering: Any
) -> None:
    answering(lambda text: min(100, len(text) / 5))
    report = discerned("--json").json
    for name in (
        "shuffle:minor",
        "shuffle:major",
        "numbers:minor",
        "irrelevant:minor",
        "rewrite-rules:minor",
    ):
        assert sees(report, name) == "no", name
    for name in ("omission:minor", "word-deletion:major", "deletions:major"):
        assert sees(report, name) == "yes", name
    assert sees(report, "attack-control") == "yes"  # any further sentence is welcome
    assert sees(report, "attack-request") == "no"  # cut, it makes no text longer
    conclusion = report["conclusion"]
    assert "shuffle:major" in conclusion
    assert "raises its score for any further sentence" in conclusion


def test_a_judge_that_obeys_gives_in_to_the_request_alone(
    discerned: Any, answering: Any
) -> None:
    answering(
        lambda text: 100 if "Rate this 100" in text or "at the very top" in text else 30
    )
    report = discerned("--perturb", "attack", "--json").json
    plea = next(
        p for p in report["perturbations"] if p["perturbation"] == "attack-plea"
    )
    assert (plea["mean_change"], plea["share_changed"], plea["sees"]) == (70, 1, "yes")
    assert sees(report, "attack-control") == "no"
    assert sees(report, "attack-request") == "no"  # it counts without that
    assert "gives in to attack-plea." in report["conclusion"]


def test_a_metric_and_a_judge_share_the_pairs_and_show_tables(
    discern: Any, answering: Any, texts: Path, judge_file: Path, tmp_path: Path
) -> None:
    pytest.importorskip("rouge_score")
    answering(lambda text: len(text) % 100)
    pairs, page, made = tmp_path / "pairs.jsonl", tmp_path / "new" / "page.html", []
    files = ("-o", pairs, "--report", page)
    for judge in ("metric/rougeL", judge_file):
        done = discern(
            judge,
            texts,
            "--perturb",
            "character",
            "--perturb",
            "case",
            *files,
            rounds=30,
        )
        assert done.code == 0
        assert "D_avg" in done.out
        assert "False alarms" in done.out
        assert "deletions:minor" in done.out
        made.append(
            [
                line
                for line in pairs.read_text().splitlines()
                if '"type": "pair"' in line
            ]
        )
    assert "What judge discerns" in done.out
    assert f"Wrote {page}" in done.out.replace("\n", "")
    assert "typos:minor" in page.read_text()
    assert "What the judge wrote" in page.read_text()
    assert made[0] == made[1]


def test_a_reference_is_not_shown_to_a_judge_of_references(
    discern: Any, server: Any, answering: Any, tmp_path: Path, judge_file: Path
) -> None:
    rows = [
        {"id": str(i), "source": f"s{i}", "output": "A bad one.", "reference": s}
        for i, s in enumerate(STORIES)
    ]
    path = write(tmp_path / "with_references.jsonl", rows)
    answering(lambda text: 50)
    report = discern(judge_file, path, "--perturb", "typos:minor", "--json").json
    assert report["role"] == "reference"
    assert {ask.judged for ask in server.judged} >= set(STORIES)
    assert not any("<reference>" in ask.last for ask in server.judged)


# -- files


def test_a_second_run_asks_nothing_and_one_after_a_kill_only_what_was_lost(
    discerned: Any, server: Any, answering: Any, tmp_path: Path
) -> None:
    answering(lambda text: len(text) % 90)
    pairs = tmp_path / "pairs.jsonl"
    command = ("--perturb", "typos", "-o", pairs, "--no-cache", "--json")
    first = discerned(*command).json
    before = pairs.read_text()
    server.forget()
    assert discerned(*command).json == first
    assert not server.judged
    assert pairs.read_text() == before
    lines = before.splitlines(keepends=True)
    kinds = [json.loads(line)["type"] for line in lines]
    assert kinds[0] == "settings"
    assert kinds.count("pair") == first["pairs"]
    pairs.write_text(
        "".join(lines[:-10]) + lines[-10][:40]
    )  # ten scores are lost, one of them half written
    assert discerned(*command).json == first
    assert len(server.judged) == 10


def test_brief_scores_equal_for_fewer_tokens(
    discern: Any, server: Any, saying: Any, texts: Path, tmp_path: Path
) -> None:
    saying(lambda ask: f"Score: {len(ask.judged) % 90}\nExplanation: Seen.")
    lm = language_model("openai/fake", connection=Connection(server.base))
    Judge(ActiveCritic("vanilla", explain="after", reading="said"), lm=lm).save(
        tmp_path / "after.json"
    )
    asked = []
    for flags in ((), ("--brief",)):
        server.forget()
        pairs = tmp_path / f"pairs{len(flags)}.jsonl"
        command = (
            tmp_path / "after.json",
            texts,
            "--perturb",
            "typos",
            "-o",
            pairs,
            "--no-cache",
            "--json",
        )
        report = discern(*command, *flags).json
        asked.append((report["perturbations"], server.judged[0].body["max_tokens"]))
    (lines, tokens), (same, fewer) = asked
    assert lines == same
    assert fewer < tokens


def test_failed_texts_are_counted_and_asked_again(
    discerned: Any, saying: Any, tmp_path: Path
) -> None:
    command = (
        "--perturb",
        "typos:minor",
        "-o",
        tmp_path / "pairs.jsonl",
        "--no-cache",
        "--json",
    )
    saying(
        lambda ask: (
            "no idea" if TOWNS[0] in ask.judged else "Explanation: x.\nScore: 50"
        )
    )
    done = discerned(*command)
    line = done.json["perturbations"][0]
    assert (done.code, line["n"], line["failed"]) == (1, 14, 1)
    saying(lambda ask: "Explanation: x.\nScore: 50")
    done = discerned(*command)
    assert (done.code, done.json["perturbations"][0]["n"]) == (0, 15)


def test_pairs_of_other_settings_are_not_gone_on_with(
    discerned: Any, answering: Any, tmp_path: Path
) -> None:
    answering(lambda text: 50)
    command = ("--perturb", "case", "-o", tmp_path / "pairs.jsonl")
    assert discerned(*command).code == 0
    for other, reason in (
        (("--seed", 1), "another seed"),
        (("--perturb", "typos"), "another perturbations"),
        (("--no-show-reference",), "another show_reference"),
    ):
        discerned(*command, *other).refused(reason, "--overwrite")
    assert discerned(*command, "--seed", 1, "--overwrite").code == 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    table(__file__, "refused"),
)
def test_what_cannot_be_is_said_in_one_line(
    discern: Any,
    answering: Any,
    texts: Path,
    judge_file: Path,
    arguments: list[str],
    reason: str,
    monkeypatch: Any,
) -> None:
    monkeypatch.delenv("JUDGESMITH_DATA", raising=False)
    answering(lambda text: 50)
    files = {"JUDGE": judge_file, "TEXTS": texts}
    done = discern(*(files.get(argument, argument) for argument in arguments))
    assert (done.code, len(done.err.strip().splitlines())) == (2, 1), done.err
    assert reason in done.err


# -- several metrics, repeats, weights


def test_metrics_with_weights(
    discern: Any, saying: Any, texts: Path, tmp_path: Path
) -> None:
    def answer(ask: Any) -> str:
        seen = any(s in ask.text for s in STORIES) or "coherence" in ask.text.lower()
        return (
            "80" if seen else "30"
        )  # fluency notices all perturbations, coherence none

    saying(answer)
    weights = tmp_path / "w.csv"
    weights.write_text("perturbation,fluency,coherence\ntypos,1,0\nshuffle,0,1\n")
    command = (
        "direct@openai/fake",
        texts,
        "--metrics",
        "summarization/fluency,summarization/coherence",
        "--weights",
        weights,
        "--perturb",
        "typos:minor",
    )
    report = discern(*command, "--perturb", "shuffle:minor", "--json").json
    assert report["metrics"] == ["fluency", "coherence"]
    typos, shuffled = report["perturbations"]
    p = 0.5**15
    for line in (typos, shuffled):
        assert line["p_by_metric"] == [pytest.approx(p), 1.0]
        assert line["d_paper"] == pytest.approx(
            -math.log(1 / (1 / p + 1)) / math.log(20)
        )
        assert line["d_normalised"] == pytest.approx(
            -math.log(1 / (0.5 / p + 0.5)) / math.log(20)
        )
    assert typos["d_expert"] == pytest.approx(-math.log(p) / math.log(20))
    assert shuffled["d_expert"] == 0
    assert report["expert"]["d_min"] == 0
    assert report["expert"]["worst"] == "shuffle:minor"
    table = discern(*command)
    assert "D paper" in table.out
    assert "With expert weights" in table.out


def test_repeats_are_asked_for_and_averaged(
    discerned: Any, answering: Any, tmp_path: Path
) -> None:
    asked: dict[str, int] = {}

    def score(text: str) -> float:
        asked[text] = asked.get(text, 0) + 1
        return 40 + 10 * asked[text] if text in STORIES else 10  # 50, 60, 70: mean 60

    answering(score)
    command = (
        "--perturb",
        "typos:minor",
        "--repeat",
        "3",
        "-o",
        tmp_path / "pairs.jsonl",
        "--json",
    )
    line = discerned(*command).json["perturbations"][0]
    assert line["mean_change"] == pytest.approx(60 - 10)
    assert set(asked.values()) == {3}
    discerned(*command)
    assert set(asked.values()) == {3}  # the file has them


# -- made by a model


def test_perturbations_by_a_writer(discerned: Any, saying: Any) -> None:
    def answer(ask: Any) -> str:
        if "names people, places" in ask.system:
            text = ask.last.split("<source>\n")[1].split("\n</source>")[0]
            for town in (
                TOWNS[:-1] if "exactly one" in ask.last else TOWNS
            ):  # none for the last text
                text = text.replace(
                    town, "Nowhere" + ("" if "exactly one" in ask.last else " Upon Sea")
                )
            return str(text)
        return f"Explanation: Seen.\nScore: {90 if ask.judged in STORIES else 20}"

    saying(answer)
    report = discerned(
        "--perturb", "entities-lm", "--writer", "openai/fake", "--json"
    ).json
    minor, major = report["perturbations"]
    assert (minor["perturbation"], minor["n"], minor["left_out"], minor["method"]) == (
        "entities-lm:minor",
        14,
        1,
        "lm",
    )
    assert (major["n"], minor["sees"], major["sees"]) == (15, "yes", "yes")
    (reason,) = report["left_out"]["entities-lm:minor"]
    assert "nothing was changed" in reason


# -- by a preset


@pytest.fixture
def long_texts(tmp_path: Path) -> Path:
    """Ten translations of more than 300 characters, as the preset wants them."""
    rows = [
        {
            "id": f"r{i}",
            "source": f"Fähre {i}.",
            "output": f"{STORIES[i]} {STORIES[i + 1]}",
            "reference": f"Another {i}.",
            "task": "translation",
        }
        for i in range(10)
    ]
    return write(tmp_path / "mt.jsonl", rows)


@pytest.fixture
def by_preset(discern: Any, server: Any, fake: Any) -> Callable[..., Any]:
    def run(*arguments: object) -> Any:
        good = [f"{one} {other}" for one, other in itertools.pairwise(STORIES)]
        server.answer = lambda ask: (
            "80" if ask.step != "probe" and any(t in ask.last for t in good) else "30"
        )
        return discern(*arguments, "--repeat", 1, "--preset", "dhp/wmt22-de-en")

    return run


def test_a_method_judges_each_metric_of_the_task(
    by_preset: Any, server: Any, long_texts: Path, tmp_path: Path
) -> None:
    pairs = tmp_path / "pairs.jsonl"
    judge = by_preset("direct@openai/fake", long_texts, "-o", pairs, "--json").told
    assert (judge["judge"], judge["metrics"]) == (
        "direct@openai/fake",
        ["accuracy", "fluency"],
    )
    assert judge["paper"]["worst"]
    assert judge["paper"]["d_min"] > 1
    assert {line["origin"] for line in judge["perturbations"]} == {"paper", "stand-in"}
    assert any("stand-ins (~) are made by rules" in note for note in judge["notes"])
    assert not any(
        "<reference>" in ask.last or "Another" in ask.last for ask in server.asks
    )
    server.forget()
    assert (
        by_preset("direct@openai/fake", long_texts, "-o", pairs, "--json").json == judge
    )
    assert not server.judged


def test_tables_have_headings_of_their_own(by_preset: Any, long_texts: Path) -> None:
    said = by_preset(
        "direct@openai/fake", long_texts, "--perturb", "paper", "--perturb", "numbers"
    ).said
    parts = (
        "the paper's perturbations",
        "stand-ins by rules",
        "perturbations of our own",
    )
    places = [said.index(part) for part in parts]
    assert places == sorted(places)
    assert (
        "Both rest on 6 of the paper's 10 perturbations of this task (without entities-lm:minor"
        in said
    )
    assert "numbers:minor +" in said
    assert "grammar-rules:minor ~" in said
    assert said.index("As the paper prints it, without 1/M") < said.index(
        "Normalised (1/M)"
    )


def test_a_dry_run_shows_texts_perturbations_and_calls(
    by_preset: Any, server: Any, long_texts: Path
) -> None:
    command = (
        "direct@openai/fake",
        long_texts,
        "--writer",
        "openai/writer",
        "--dry-run",
    )
    plan = by_preset(*command, "--json").told
    assert not server.judged
    assert (plan["texts"]["n"], plan["texts"]["task"], plan["metrics"]) == (
        10,
        "translation",
        ["translation/accuracy", "translation/fluency"],
    )
    lines = {line["perturbation"]: line for line in plan["perturbations"]}
    assert len(lines) == 10
    assert {line["origin"] for line in lines.values()} == {"paper"}
    assert {line["n"] for line in lines.values()} == {10}
    # 10 perturbations and the originals, two metrics; four of the perturbations are to be written first
    assert (plan["calls"], plan["to_write"], plan["writer"]) == (
        11 * 10 * 2,
        40,
        "openai/writer",
    )
    out = by_preset(*command).out
    assert "10 of 10 outputs of mt.jsonl" in out
    assert "word-deletion:major (paper): 10 texts" in out
    assert "40 texts to be written by openai/writer first" in out
