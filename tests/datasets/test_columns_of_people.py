"""Which columns and ratings count as people's: scales upside down, several raters, metrics, machines, rejections."""

import json
from pathlib import Path
from typing import Any

import pytest

from judgesmith.datasets.ends import order_in_name
from judgesmith.datasets.loading import read_labels
from judgesmith.datasets.records import Labels
from judgesmith.errors import LabelsError

OWN = [5, 1, 4, 2] * 3
OTHER = [4, 2, 5, 1] * 3
LARGE = [90, 35, 20, 75] * 3
SHARES = [0.31, 0.62, 0.18, 0.77] * 3


def rows(**columns: list[Any]) -> list[dict[str, Any]]:
    """Twelve answers, with columns of twelve cells each."""
    texts = [
        {
            "question": f"How do I reach stop {n}?",
            "answer": f"Take tram {n} to w{n * 7}.",
        }
        for n in range(12)
    ]
    named = [
        dict(zip(columns, cells, strict=True))
        for cells in zip(*columns.values(), strict=True)
    ]
    return [text | own for text, own in zip(texts, named, strict=True)]


def read(**columns: list[Any]) -> Labels:
    return read_labels(rows(**columns))


def asked(match: str, **columns: list[Any]) -> None:
    with pytest.raises(LabelsError, match=match):
        read(**columns)


# -- which end is the best


@pytest.mark.parametrize(
    "name",
    [
        "Rating (1 = outstanding, 5 = awful)",
        "Grade (1 = perfectly clear, 5 = not clear at all)",
        "Note (1 = très bien, 5 = mauvais)",
        "Cijfer (1 = uitstekend, 5 = onvoldoende)",
        "Оценка (1 = отлично, 5 = плохо)",
        "評価 (1=優, 5=劣)",
        "التقييم (١ = ممتاز، ٥ = سيئ)",
        "Rating (best = 1, worst = 5)",
        "Rating: 1 (great) to 5 (terrible)",
        "rating_1_best_5_worst",
        "Score (lower is better)",
        "Bewertung (je niedriger, desto besser)",
        "Rating (1=👍, 5=👎)",
    ],
)
def test_a_name_that_says_that_the_lowest_is_the_best_is_refused(name: str) -> None:
    table = rows(**{name: [6 - own for own in OWN]})
    for scale in (None, (1.0, 5.0)):
        with pytest.raises(LabelsError, match="the lowest score is the best"):
            read_labels(table, scale=scale, columns={"score": name})


@pytest.mark.parametrize(
    "name",
    [
        "Rating (1 = always, 5 = never)",
        "Note (1 = erfüllt, 5 = verfehlt)",
        "Rating (1 = kiváló, 5 = gyenge)",
        "Toxicity score (1 = low, 5 = high)",
        "Rating (1: ship it, 5: bin it)",
        "score 1😀 5😡",
        "😡 1 – 5 😀",
        "Rating 1 ☹ to 5 ☺",
        "mood 1 :-) 5 :-(",
        "Bewertung 1 (++) bis 5 (--)",
        "Schulnote (1-6)",
        "Note (1-6)",
        "Gesamtnote 1-6",
        "Známka (1-5)",
        "Rank (1-5)",
    ],
)
def test_ends_that_do_not_tell_are_asked_about(name: str) -> None:
    table = rows(**{name: OWN})
    columns = {"score": name}
    with pytest.raises(
        LabelsError, match=r"do(es)? not tell whether.*--scale LOW HIGH"
    ):
        read_labels(table, columns=columns)
    assert read_labels(table, columns=columns, scale=(1, 5)).scores.tolist() == OWN


@pytest.mark.parametrize(
    "name",
    [
        "Rating (1 = awful, 5 = outstanding)",
        "Grade (1 = not clear at all, 5 = perfectly clear)",
        "评分 (1=很差, 5=很好)",
        "Rating (1-5, 5 = best)",
        "Q3 rating (1-5)",
        "Rating (higher is better)",
        "rating of 3 raters",
        "Rating 1★ to 5★★★★★",
        "Rating (1-5) ⭐",
        "score 1-5 (+ comments)",
        "Note (1-5)",
        "Rating 1👎 5👍",
    ],
)
def test_a_name_that_runs_upwards_or_names_no_end_is_taken(name: str) -> None:
    stated = order_in_name(name, 1, 5)
    assert stated is None or stated[0] == "rising"
    assert (
        read_labels(rows(**{name: OWN}), columns={"score": name}).scores.tolist() == OWN
    )


def test_words_beside_numbers_that_do_not_tell_are_asked_about() -> None:
    words = {1: "gyenge", 2: "", 4: "", 5: "kiváló"}
    cells = [f"{own} - {words[own]}" if words[own] else str(own) for own in OWN]
    asked(r"'1 gyenge', '5 kiváló'.* do not tell", rating=cells)
    labels = read_labels(rows(rating=cells), scale=(1, 5))
    assert labels.scores.tolist() == OWN


# -- several raters


@pytest.mark.parametrize(
    "names",
    [
        ("score", "score_2"),
        ("score", "score2"),
        ("score", "score_1"),
        ("grade", "grade.1"),
        ("Human score", "Human score #2"),
        ("mos", "mos (2)"),
        ("Rating (1-5)", "Rating (1-5).1"),
        ("quality", "quality 2"),
        ("expert1", "expert2"),
    ],
)
def test_raters_count_under_any_number_of_their_names(names: tuple[str, str]) -> None:
    labels = read(**dict(zip(names, (OWN, OTHER), strict=True)))
    assert labels.understood()["raters"] == 2
    assert labels.scores.tolist() == [
        (a + b) / 2 for a, b in zip(OWN, OTHER, strict=True)
    ]


def test_a_mean_beside_its_raters_is_the_score() -> None:
    means = [(a + b) / 2 for a, b in zip(OWN, OTHER, strict=True)]
    labels = read(score=means, score_1=OWN, score_2=OTHER)
    assert (labels.scores.tolist(), labels.understood()["raters"]) == (means, 2)
    third = [6 - own for own in OWN]
    labels = read(score=third, score_1=OWN, score_2=OTHER)
    assert labels.understood()["raters"] == 3


def test_a_column_that_was_passed_over_is_named() -> None:
    labels = read(score=OWN, **{"Score Ben": OTHER})
    assert labels.scores.tolist() == OWN
    assert any(
        "'score'" in w and "'Score Ben' could be ratings" in w for w in labels.warnings
    )
    asked(
        "'rating' and 'rating_ben' could each be the score",
        rating=OWN,
        rating_ben=OTHER,
    )


@pytest.mark.parametrize(
    "columns",
    [
        {"rater_1": OWN, "rater_2": LARGE},
        {"rating": [{"ann": a, "bob": b} for a, b in zip(OWN, LARGE, strict=True)]},
        {"rating": [[a, b] for a, b in zip(OWN, LARGE, strict=True)]},
        {"human_1": [2 * own for own in OWN], "human_2": [own / 5 for own in OWN]},
        {"stars": OWN, "stars_2": [int(own > 2) for own in OWN]},
    ],
)
def test_raters_on_different_scales_are_not_averaged(columns: dict[str, Any]) -> None:
    asked("rate on different scales", **columns)


def test_raters_on_different_scales_in_rows_of_their_own() -> None:
    one = [row | {"annotator": "ann"} for row in rows(rating=OWN)]
    two = [row | {"annotator": "bob"} for row in rows(rating=LARGE)]
    with pytest.raises(LabelsError, match=r"'ann' \(1 to 5\) and 'bob' \(20 to 90\)"):
        read_labels(one + two)
    assert len(read_labels(one + two, scale=(0, 100))) == 12


def test_a_strict_rater_is_on_the_same_scale() -> None:
    labels = read(rater_1=OWN, rater_2=[min(3, own) for own in OWN])
    assert labels.understood()["raters"] == 2


# -- metrics


@pytest.mark.parametrize(
    "columns",
    [
        {"rouge_score": SHARES, "Tom": OWN},
        {"METEOR (0-1)": SHARES, "Tom": OWN},
        {"score_chrf": SHARES, "Tom": OWN},
        {"score": SHARES, "Tom": OWN},
        {"faithfulness_rating": OTHER, "Tom": OWN},
        {"is_long": [own > 2 for own in OWN], "Tom": OWN},
        {"thumbs": ["👍" if own > 2 else "👎" for own in OWN], "Rating Tom": OWN},
        {"Quality": ["ok" if own > 2 else "bad" for own in OWN], "Rating Tom": OWN},
    ],
)
def test_two_columns_that_could_be_ratings_are_asked_about(
    columns: dict[str, Any],
) -> None:
    first, second = columns
    asked(
        f"'{first}' and '{second}' could each be the score".replace("(", r"\(").replace(
            ")", r"\)"
        ),
        **columns,
    )
    assert (
        read_labels(rows(**columns), columns={"score": second}).scores.tolist() == OWN
    )


def test_the_question_says_what_to_type() -> None:
    thumbs = ["👍" if own > 2 else "👎" for own in OWN]
    options = (
        '--columns score=Thumbs or --columns "score=Rating Anna" or --columns "score=Rating Ben", or each '
        'person\'s with --columns "rater_score=Rating Anna" --columns "rater_score=Rating Ben"'
    )
    columns = {"Rating Anna": OWN, "Rating Ben": OTHER, "Thumbs": thumbs}
    with pytest.raises(LabelsError) as refused:
        read(**columns)
    assert options in str(refused.value)


def test_comments_are_no_ratings_beside_some() -> None:
    words = [f"it does not say {n} where the stop is" for n in range(12)]
    asked(
        r"'Feedback' holds no ratings.*--columns \"score=Rating Anna\"",
        Feedback=words,
        **{"Rating Anna": OWN},
    )


def test_what_was_guessed_is_said() -> None:
    for name in ("nli_score", "sonnet rating", "eval.tone.score"):
        (note,) = [w for w in read(**{name: OWN}).warnings if "are taken from" in w]
        assert repr(name) in note
        assert "machine" in note
    assert not any(
        "machine" in w for w in read(human_score=OWN, rouge_score=SHARES).warnings
    )


# -- machines' ratings


@pytest.mark.parametrize(
    "machine",
    ["sdk", "online_scoring", "AUTO_EVAL", "gpt-4.1", "ragas", "API", "guardrail"],
)
@pytest.mark.parametrize("person", ["ui", "HUMAN", "annotation_queue", "end-user"])
def test_sources_of_people_count_and_others_are_named(
    machine: str, person: str
) -> None:
    table = [row | {"feedback_scores": []} for row in rows(n=list(range(12)))]
    for row, own in zip(table, OWN, strict=True):
        row["feedback_scores"] = [
            {"name": "quality", "value": 6 - own, "source": machine},
            {"name": "quality", "value": own, "source": person},
        ]
    labels = read_labels(table)
    assert labels.scores.tolist() == OWN
    assert any(
        f"12 ratings were left out, whose source {machine!r} is no known person's" in w
        for w in labels.warnings
    )
    for row in table:
        del row["feedback_scores"][1]
    with pytest.raises(
        LabelsError, match=f"whose source '{machine}' is no known person's"
    ):
        read_labels(table)


@pytest.mark.parametrize(
    ("key", "source"),
    [
        ("feedback_source", {"type": "auto_eval", "metadata": {}}),
        ("source_info", {"type": "CODE"}),
        ("source", {"source_type": "LLM_JUDGE", "source_id": "x"}),
        ("annotator_kind", "CODE"),
    ],
)
def test_a_source_stands_in_many_places(key: str, source: Any) -> None:
    table = rows(n=list(range(12)))
    person: Any = (
        {"type": "app", "user_id": "u1"} if isinstance(source, dict) else "HUMAN"
    )
    for row, own in zip(table, OWN, strict=True):
        row["feedback"] = [
            {"key": "quality", "score": 6 - own, key: source},
            {"key": "quality", "score": own, key: person},
        ]
    labels = read_labels(table)
    assert labels.scores.tolist() == OWN
    if isinstance(person, dict):
        assert labels.rows[0].raters == {labels.aspect: ("u1",)}


def test_a_column_of_sources_leaves_out_what_no_person_gave() -> None:
    people = [row | {"rating_source": "human"} for row in rows(rating=OWN)]
    machine = [
        row | {"answer": row["answer"] + " Or walk.", "rating_source": "claude"}
        for row in rows(rating=OTHER)
    ]
    labels = read_labels(people + machine)
    assert labels.scores.tolist() == OWN
    assert labels.account is not None
    assert {why for _, why in labels.account.skipped} == {
        "a rating whose source 'claude' is no known person's"
    }


# -- annotations that do not count


@pytest.mark.parametrize(
    ("column", "counts", "does_not"),
    [
        ("Status", "APPROVED", "TIMED-OUT"),
        ("Status", "IP Address", "Survey Test"),
        ("status", "complete", "abgelehnt"),
        ("review_status", "awaiting review", "declined by reviewer"),
        ("Submission state", "done", "not submitted"),
        ("discarded", "no", "yes"),
        ("is_invalid", False, True),
        ("_tainted", 0, 1),
        ("skipped", "", "x"),
        ("Finished", True, False),
        ("annotation_accepted", "TRUE", "FALSE"),
    ],
)
def test_ratings_that_do_not_count_are_left_out(
    column: str, counts: Any, does_not: Any
) -> None:
    good = [row | {column: counts} for row in rows(rating=OWN)]
    good[0][column] = counts if column != "Status" else "AWAITING REVIEW"
    bad = [
        row | {"answer": row["answer"] + " Or walk.", column: does_not}
        for row in rows(rating=OTHER)[:5]
    ]
    labels = read_labels(good + bad)
    assert labels.scores.tolist() == OWN
    assert labels.account is not None
    assert [why for _, why in labels.account.skipped] == [
        f"a rating marked {str(does_not)!r}"
    ] * 5


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ("accepted", [True] * 9 + [False] * 3),
        ("quality check", ["ok"] * 9 + ["rejected"] * 3),
        ("status", ["approved"] * 9 + ["zurückgewiesen"] * 3),
    ],
)
def test_what_may_not_count_is_named(column: str, cells: list[Any]) -> None:
    labels = read(rating=OWN, **{column: cells})
    assert labels.scores.tolist() == OWN
    assert any(f"column {column!r}: ratings beside" in w for w in labels.warnings)


@pytest.mark.parametrize(
    ("column", "cells", "said"),
    [
        ("_trust", [0.4 + n / 50 for n in range(12)], "less than 1 in 12 of 12 rows"),
        ("Progress", [100] * 10 + [37, 80], "less than 100 in 2 of 12 rows"),
        ("Survey progress", ["100%"] * 11 + ["5%"], "less than 100 in 1 of 12 rows"),
        ("RejectionTime", [""] * 11 + ["Mon Nov 2"], "filled in 1 of 12 rows"),
        ("rejected_by", [""] * 10 + ["ann", "bo"], "filled in 2 of 12 rows"),
    ],
)
def test_shares_and_traces_beside_ratings_are_named(
    column: str, cells: list[Any], said: str
) -> None:
    labels = read(rating=OWN, **{column: cells})
    assert labels.scores.tolist() == OWN
    assert any(f"column {column!r}: {said}" in w for w in labels.warnings)


@pytest.mark.parametrize(
    ("column", "cells"),
    [("Progress", [100] * 12), ("_trust", [1.0] * 12), ("RejectionTime", [""] * 12)],
)
def test_whole_shares_are_not_named(column: str, cells: list[Any]) -> None:
    warnings = read(rating=OWN, **{column: cells}).warnings
    assert not [warning for warning in warnings if "their ratings count" in warning]


def test_columns_of_yes_and_no_that_are_not_read_are_named() -> None:
    excluded = ["nein"] * 9 + ["ja"] * 3
    (note,) = [
        w
        for w in read(score=OWN, Ausgeschlossen=excluded).warnings
        if "Ausgeschlossen" in w
    ]
    assert "if they say which ratings count" in note


def test_a_single_rating_that_does_not_count() -> None:
    cells = [
        [
            {"rater": "a", "rating": own, "state": "submitted"},
            {"rater": "b", "rating": 6 - own, "state": "rejected"},
        ]
        for own in OWN
    ]
    labels = read(human_ratings=cells)
    assert labels.scores.tolist() == OWN
    assert any(
        "12 ratings were left out, marked state: rejected" in w for w in labels.warnings
    )


def test_a_declined_review_of_label_studio(tmp_path: Path) -> None:
    def annotation(value: int, who: int, **more: Any) -> dict[str, Any]:
        answer = {
            "type": "rating",
            "from_name": "q",
            "to_name": "t",
            "value": {"rating": value},
        }
        return {"id": who, "completed_by": who, "result": [answer], **more}

    tasks = [
        {
            "id": n,
            "data": {
                "question": f"How do I reach stop {n}?",
                "answer": f"Take tram {n} to w{n * 7}.",
            },
            "annotations": [
                annotation(own, 1, reviews=[{"accepted": False}, {"accepted": True}]),
                annotation(6 - own, 2, reviews=[{"accepted": False}]),
                annotation(6 - own, 3, rejected=True),
            ],
        }
        for n, own in enumerate(OWN)
    ]
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    labels = read_labels(path)
    assert labels.scores.tolist() == OWN
    assert (
        "12 ratings were left out, which are marked reviews: declined"
        in labels.warnings[0]
    )


# -- outputs that are none


@pytest.mark.parametrize(
    "error",
    ["#REF!", "#BEZUG!", "#¡VALOR!", "#N/D", "#DIV/0!", "#ИМЯ?", "#NV", "Err:502"],
)
def test_an_error_of_a_spreadsheet_is_no_output(error: str) -> None:
    table = rows(score=OWN)
    table[3]["answer"] = error
    with pytest.raises(LabelsError, match="is an error of a spreadsheet and no output"):
        read_labels(table)


@pytest.mark.parametrize("text", ["#Monday!", "#1", "# Title", "#WOW it works!"])
def test_a_text_that_begins_with_a_number_sign_is_one(text: str) -> None:
    table = rows(score=OWN)
    table[3]["answer"] = text
    assert read_labels(table).rows[3].output == text
