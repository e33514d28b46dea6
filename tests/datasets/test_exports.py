"""Exports of annotation and tracing tools: answers of real servers (`recorded/` says their versions), and variants."""

import json
from pathlib import Path
from typing import Any

import pytest
from json_lines import write

from judgesmith.datasets.exports import OF_PARTS, OF_SPANS
from judgesmith.datasets.exports.reading import AGAIN, recognised
from judgesmith.datasets.exports.traces import trace_input, trace_output
from judgesmith.datasets.loading import iter_rows, read_compared, read_labels
from judgesmith.datasets.records import Labels
from judgesmith.datasets.statuses import not_of_people
from judgesmith.errors import LabelsError
from judgesmith.rows import as_text

FOLDER = Path(__file__).parent / "recorded"
RECORDED: dict[str, Any] = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.iterdir()
}
TEXTS = [
    (
        f"Is shop {n} open?",
        f"Shop {n} is open till {n + 9}, and the key to it hangs {n} steps away.",
    )
    for n in range(10)
]


def plain(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """What is made of an export's records, and how many ratings were left out for which reason."""
    export = recognised(rows, "rows")
    assert export is not None
    return [export.record(row) for row in rows], {
        why: n for why, n in export.left.items() if n
    }


def scores(labels: Labels) -> list[float]:
    return [float(score) for score in labels.scores]


# -- as real servers answered -----------------------------------------------------------------------------------------


def test_recorded_servers_say_their_versions() -> None:
    assert {name: made["version"] for name, made in RECORDED.items()} == {
        "label_studio": "Label Studio 1.23.2",
        "mlflow": "MLflow 3.17.2",
        "phoenix": "Phoenix 20.26.1, its client 3.5.0",
    }


def test_label_studio_as_its_server_exports() -> None:
    made = RECORDED["label_studio"]
    pairs = read_compared(made["pairwise"])
    assert pairs is not None
    assert [pair.won for pair, _ in pairs] == [1.0, 0.0]
    assert [pair.a.output for pair, _ in pairs] == [
        "Shop 0 is open till noon.",
        "Shop 1 is open till noon.",
    ]
    ((row, _), *_) = iter_rows(made["chat"])
    assert (row.source, row.output, row.scores) == (
        "User: Is shop 0 open?",
        "Till noon.",
        {"good": 3},
    )
    found, left = plain(made["regions"])
    assert [one["scores"] for one in found] == [
        {"good": {"1": 3}},
        {"good": {"1": 4}},
    ]
    assert left == {OF_PARTS: 2}
    found, _ = plain(made["taxonomy"])
    assert [one["scores"] for one in found] == [
        {"kind": {"1": "Good"}, "tags": {"1": "short + kind"}},
        {"kind": {"1": "Bad"}, "tags": {"1": "kind"}},
    ]


@pytest.mark.parametrize("shape", ["lines", "table"])
def test_mlflow_as_its_server_exports(shape: str) -> None:
    """Of each trace the root was rated 5 and an inner span 1, and its tone 4, then 2 by the same person."""
    found, left = plain(RECORDED["mlflow"][shape])
    assert [one["scores"] for one in found] == [
        {"quality": {"ann": 5}, "tone": {"ann": 2}}
    ] * 3
    assert [as_text(one["source"]) for one in found] == ["Q2?", "Q1?", "Q0?"]
    assert [as_text(one["output"]) for one in found] == [None, "Answer 1.", "Answer 0."]
    assert left == {OF_SPANS: 3, AGAIN: 3}


def test_single_spans_count_only_where_their_trace_is_known() -> None:
    without = [
        {key: cell for key, cell in row.items() if key != "spans"}
        for row in RECORDED["mlflow"]["table"]
    ]
    found, left = plain(without)
    assert [one["scores"] for one in found] == [{"tone": {"ann": 2}}] * 3
    assert left[OF_SPANS] == 6
    alone = json.loads(
        json.dumps(without).replace('\\"num_spans\\": 2', '\\"num_spans\\": 1')
    )
    assert plain(alone)[0][0]["scores"]["quality"] == {
        "ann": 1
    }  # of the only span, which is the root


def test_phoenix_as_its_client_joins() -> None:
    rows = RECORDED["phoenix"]["joined"]
    found, left = plain(rows)
    assert {one["id"] for one in found} == {row["context.span_id"] for row in rows}
    assert left == {not_of_people("LLM"): 3}
    given = {
        (one["id"][-1], who): value
        for one in found
        for by in one["scores"].values()
        for who, value in by.items()
    }
    assert given == {
        **{(f"{n + 1}", "ada"): f"{n}.0" for n in range(3)},
        **{(f"{n + 1}", "ben"): "1.0" for n in range(3)},
        **{(f"{n + 100:x}"[-1], "kit"): "0.0" for n in range(3)},
    }


# -- variants ---------------------------------------------------------------------------------------------------------


def flat(n: int, **more: Any) -> dict[str, Any]:
    source, output = TEXTS[n]
    return {"id": f"r{n}", "prompt": source, "response": output, **more}


def test_a_suggestion_is_never_a_label() -> None:
    rows = [
        flat(n, **{"tone.suggestion": n % 5, "tone.suggestion.agent": "m"})
        for n in range(10)
    ]
    with pytest.raises(LabelsError, match="no row has a score"):
        read_labels(rows)
    rows = [
        flat(
            n, **{"tone-suggestion": n % 5, "tone-suggestion-metadata": {"agent": "m"}}
        )
        for n in range(10)
    ]
    with pytest.raises(LabelsError, match="no row has a score"):
        read_labels(rows)
    answered = {"tone.responses.users": ["u"], "tone.responses.status": ["submitted"]}
    rows = [
        flat(n, **answered, **{"tone.responses": [n % 5 + 1], "tone.suggestion": 9})
        for n in range(10)
    ]
    assert scores(read_labels(rows, scale=(1, 5))) == [1, 2, 3, 4, 5] * 2


def test_argilla_as_datasets_and_pandas_keep_it(tmp_path: Path) -> None:
    columns = {"user_id": ["u", "v"], "status": ["submitted", "draft"]}
    rows = [flat(n, tone={**columns, "value": [n % 5 + 1, 3]}) for n in range(10)]
    assert scores(read_labels(rows, scale=(1, 5))) == [1, 2, 3, 4, 5] * 2
    pandas = pytest.importorskip("pandas")
    cells = {
        "tone.responses.users": ["u", "v"],
        "tone.responses.status": ["submitted", "discarded"],
    }
    table = pandas.DataFrame(
        [flat(n, **{"tone.responses": [n % 5 + 1, 3], **cells}) for n in range(10)]
    )
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        assert scores(read_labels(tmp_path / name, scale=(1, 5))) == [1, 2, 3, 4, 5] * 2


def task(
    n: int,
    result: list[dict[str, Any]],
    data: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    said = {"completed_by": 1, "result": result, "created_at": "2026-01-01", **more}
    return {
        "id": n,
        "data": data or {"question": TEXTS[n][0], "answer": TEXTS[n][1]},
        "annotations": [said],
    }


def rated(value: dict[str, Any], name: str = "good", **more: Any) -> dict[str, Any]:
    return {"from_name": name, "to_name": "answer", "value": value, **more}


@pytest.mark.parametrize(
    ("result", "expected", "left"),
    [
        ([rated({"rating": 3})], {"good": {"1": 3}}, {}),
        ([rated({"rating": 3, "start": 0, "end": 2})], {}, {OF_PARTS: 1}),
        (
            [rated({"choices": ["Bad"], "x": 1, "y": 2, "width": 3, "height": 4})],
            {},
            {OF_PARTS: 1},
        ),
        ([rated({"rating": 3}, item_index=1)], {}, {OF_PARTS: 1}),
        (
            [
                rated({"start": 0, "end": 2, "labels": ["Minor"]}, "label", id="r"),
                rated({"rating": 3}, id="r"),
            ],
            {},
            {OF_PARTS: 1},
        ),
        (
            [rated({"taxonomy": [["Style", "Good"]]})],
            {"good": {"1": "Style > Good"}},
            {},
        ),
        ([rated({"choices": ["a", "b"]})], {"good": {"1": "a + b"}}, {}),
        ([rated({"number": 7})], {"good": {"1": 7}}, {}),
        ([rated({"ranker": {"rank": ["a", "b"]}}, "order")], {}, {}),
    ],
)
def test_label_studio_answers(
    result: list[dict[str, Any]], expected: Any, left: Any
) -> None:
    found, out = plain([task(0, result)])
    assert (found[0]["scores"], out) == (expected, left)


def test_label_studio_before_version_1() -> None:
    rows = [task(n, [rated({"rating": n % 5 + 1})]) for n in range(10)]
    for row in rows:
        row["completions"] = [
            *row.pop("annotations"),
            {
                "result": [rated({"rating": 1})],
                "skipped": True,
                "created_at": "2026-01-02",
            },
            {
                "result": [rated({"rating": 1})],
                "was_generated": True,
                "created_at": "2026-01-02",
            },
        ]
    labels = read_labels(rows, scale=(1, 5))
    assert scores(labels) == [1, 2, 3, 4, 5] * 2
    assert "10 ratings were left out, which are marked skipped" in labels.warnings[0]
    assert "10 ratings were left out, which no person gave" in labels.warnings[0]


def test_the_last_answer_of_a_person_stands() -> None:
    row = task(
        0, [rated({"rating": 5}), rated({"text": ["Fine."]}, "note", type="textarea")]
    )
    row["annotations"] += [
        {
            "completed_by": 1,
            "created_at": "2025-01-01",
            "result": [rated({"rating": 2})],
        }
    ]
    row["annotations"] += [
        {
            "completed_by": 2,
            "created_at": "2025-01-01",
            "result": [rated({"rating": 1})],
        }
    ]
    found, left = plain([row])
    assert found[0]["scores"] == {"good": {"1": 5, "2": 1}}
    assert left == {AGAIN: 1}
    nobody = {
        "source": {"source_type": "HUMAN"},
        "assessment_name": "good",
        "valid": True,
    }
    given = [{**nobody, "feedback": {"value": value}} for value in (1, 2)]
    found, left = plain(
        [{"trace_id": "t", "request": "Q", "response": "A", "assessments": given}]
    )
    assert found[0]["scores"] == {"good": {"1": 1, "2": 2}}
    assert not left


@pytest.mark.parametrize(
    ("names", "compared"),
    [
        (("answer_a", "answer_b"), True),
        (("leftDraft", "rightDraft"), True),
        (("pairText1", "pairText2"), True),
        (("base", "tuned"), False),
    ],
)
def test_two_outputs_are_found_or_asked_for(
    names: tuple[str, str], compared: bool
) -> None:
    choice = {"from_name": "better", "type": "pairwise"}
    rows = [
        task(
            n,
            [{**choice, "value": {"selected": "left" if n % 2 else "right"}}],
            dict(zip(names, TEXTS[n], strict=True)),
        )
        for n in range(10)
    ]
    if not compared:
        with pytest.raises(
            LabelsError,
            match=r"which two outputs does 'better' compare.*--columns output_a=NAME",
        ):
            read_labels(rows)
    labels = read_labels(
        rows, columns={} if compared else {"output_a": names[0], "output_b": names[1]}
    )
    assert labels.kind == "preference"
    assert scores(labels)[:4] == [0, 1, 1, 0]


def test_several_comparisons_are_asked_for() -> None:
    choices = [
        {"from_name": name, "type": "pairwise", "value": {"selected": "left"}}
        for name in ("kind", "true")
    ]
    rows = [
        task(n, choices, {"answer1": TEXTS[n][1], "answer2": f"Ask {n}."})
        for n in range(10)
    ]
    with pytest.raises(
        LabelsError,
        match=r"several questions compare two outputs \(kind, true\).*--columns winner=NAME",
    ):
        read_labels(rows)
    assert len(read_labels(rows, columns={"winner": "kind"})) == 20


def test_words_that_name_a_side_compare() -> None:
    fields = [
        {"prompt": source, "response_a": output, "response_b": f"Ask {n}."}
        for n, (source, output) in enumerate(TEXTS)
    ]
    rows = [
        {
            "id": f"{n}",
            "fields": field,
            "responses": {
                "best": [{"user_id": "u", "value": word, "status": "submitted"}]
            },
        }
        for n, (field, word) in enumerate(
            zip(fields, ["response_a", "B", "tie", "A", "Response B"] * 2, strict=True)
        )
    ]
    labels = read_labels(rows)
    assert labels.kind == "preference"
    assert scores(labels)[::2][:5] == [1, 0, 0.5, 1, 0]


def test_a_rating_without_an_output_is_counted_and_stops_nothing() -> None:
    rows = [task(n, [rated({"rating": n % 5 + 1})]) for n in range(10)]
    rows[3]["data"]["answer"] = None
    labels = read_labels(rows, scale=(1, 5))
    assert len(labels) == 9
    assert labels.account is not None
    assert labels.account.reasons() == {"a rating, but no output": [4]}


def test_scores_and_annotations_alone_are_refused() -> None:
    old = {
        "timestamp": "x",
        "traceId": "t",
        "observationId": None,
        "source": "ANNOTATION",
        "name": "good",
        "value": 1,
    }
    with pytest.raises(LabelsError, match="scores of Langfuse without the texts"):
        read_labels([old] * 10)
    wanted = (
        "annotation_name",
        "annotator_kind",
        "identifier",
        "result.score",
        "result.label",
    )
    rows = [
        {name: row[name] for name in wanted} for row in RECORDED["phoenix"]["joined"]
    ]
    with pytest.raises(LabelsError, match="annotations of Phoenix without the texts"):
        read_labels(rows)


def test_several_aspects_are_asked_for_before_words() -> None:
    rows = [
        task(
            n,
            [
                rated({"rating": n % 5 + 1}),
                rated({"choices": ["x" if n % 2 else "y"]}, "tag"),
            ],
        )
        for n in range(10)
    ]
    with pytest.raises(
        LabelsError,
        match=r"there are several aspects \(good, tag\); pass --aspect NAME",
    ):
        read_labels(rows)
    with pytest.raises(LabelsError, match='worst first: --categories "x,y"'):
        read_labels(rows, aspect="tag")
    assert scores(read_labels(rows, aspect="tag", categories=["y", "x"])) == [0, 1] * 5


@pytest.mark.parametrize(
    ("name", "cells", "doubted"),
    [
        ("hallucination", ("Yes", "No"), True),
        ("Is it toxic?", (True, False), True),
        ("containsErrors", ("1", "0"), True),
        ("fails_to_follow", ("no", "yes"), True),
        ("harmful", ("no", "partially", "yes"), True),
        ("no_hallucination", ("Yes", "No"), False),
        ("hallucination", ("pass", "fail"), False),
        ("hallucination", ("hallucinated", "factual"), False),
        ("helpful", ("Yes", "No"), False),
        ("error_handling", ("Yes", "No"), False),
    ],
)
def test_which_end_is_the_better_one_is_asked(
    name: str, cells: tuple[Any, ...], doubted: bool
) -> None:
    rows = [
        {"output": output, f"scores.{name}": cells[n % len(cells)]}
        for n, (_, output) in enumerate(TEXTS)
    ]
    if not doubted:
        assert len(read_labels(rows)) == 10
        return
    with pytest.raises(
        LabelsError,
        match=r"names a fault, so '(yes|true|1)' may be the worse answer; .*--categories",
    ):
        read_labels(rows)
    words = [str(cell).lower() for cell in cells]
    assert scores(read_labels(rows, categories=words))[: len(cells)] == pytest.approx(
        [n + (len(cells) > 2) for n in range(len(cells))]
    )


def test_higher_numbers_of_a_fault_are_named() -> None:
    rows = [
        {"output": output, "scores.toxicity": n % 5 + 1}
        for n, (_, output) in enumerate(TEXTS)
    ]
    notes = " ".join(read_labels(rows, scale=(1, 5)).warnings)
    assert (
        "higher scores are taken as better ones; if they say how much of a fault there is, reverse them"
        in notes
    )


@pytest.mark.parametrize(
    ("value", "text", "context", "parts"),
    [
        ("S", "S", None, ()),
        (None, None, None, ()),
        ({"question": "S"}, "S", None, ()),
        ('{"question": "S"}', "S", None, ()),
        ({"question": "S", "context": "C"}, "S", "C", ()),
        ({"context": "C"}, "C", None, ()),
        ({"source": "S", "id": 7}, "S", None, ()),
        ({"a": "S", "b": 7}, '{"a": "S", "b": 7}', None, ("a", "b")),
        ({"messages": [{"role": "user", "content": "S"}]}, "User: S", None, ()),
        (
            {"model": "m", "input": "S", "instructions": "Be kind."},
            "System: Be kind.\nUser: S",
            None,
            (),
        ),
        (
            {"model": "m", "contents": ["S"], "config": {"temperature": 0}},
            "User: S",
            None,
            (),
        ),
        (
            {
                "model": "m",
                "max_tokens": 9,
                "system": "Be kind.",
                "messages": [{"role": "user", "content": "S"}],
            },
            "System: Be kind.\nUser: S",
            None,
            (),
        ),
        (
            {
                "modelId": "m",
                "messages": [{"role": "user", "content": [{"text": "S"}]}],
                "inferenceConfig": {},
            },
            "User: S",
            None,
            (),
        ),
    ],
)
def test_one_reading_of_a_trace_s_input(
    value: Any, text: str | None, context: Any, parts: tuple[str, ...]
) -> None:
    side = trace_input(value)
    assert (as_text(side.value), side.context, side.parts) == (text, context, parts)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("O", "O"),
        ({"answer": 4.5}, "4.5"),
        ({"output": "O", "cost": 1}, "O"),
        (
            {
                "choices": [{"message": {"role": "assistant", "content": "O"}}],
                "usage": {},
            },
            "O",
        ),
        (
            {
                "choices": [
                    {
                        "message": {
                            "role": "assistant",
                            "content": None,
                            "refusal": "No.",
                        }
                    }
                ]
            },
            "No.",
        ),
        (
            {
                "output": {
                    "message": {"role": "assistant", "content": [{"text": "O"}]}
                },
                "stopReason": "end_turn",
            },
            "O",
        ),
        (
            {"candidates": [{"content": {"parts": [{"text": "O"}], "role": "model"}}]},
            "O",
        ),
        (
            {
                "model": "m",
                "message": {"role": "assistant", "content": "O"},
                "done": True,
            },
            "O",
        ),
        (
            {
                "object": "response",
                "output": [
                    {"type": "reasoning", "summary": []},
                    {
                        "type": "message",
                        "role": "assistant",
                        "content": [{"type": "output_text", "text": "O"}],
                    },
                ],
            },
            "O",
        ),
        (
            {
                "role": "assistant",
                "type": "message",
                "content": [{"type": "text", "text": "O"}],
            },
            "O",
        ),
    ],
)
def test_one_reading_of_a_trace_s_output(value: Any, text: str) -> None:
    assert as_text(trace_output(value).value) == text


# Ratings in lists of objects that name them


def objects(
    *parts: dict[str, Any], column: str = "ratings", source: str = "source"
) -> list[dict[str, Any]]:
    """Rows whose column holds these objects; a value n stands for the row's own rating."""
    return [
        {source: asked, "output": output}
        | {
            column: [
                {k: n % 5 + 1 if v == "n" else v for k, v in p.items()} for p in parts
            ]
        }
        for n, (asked, output) in enumerate(TEXTS)
    ]


OWN = [n % 5 + 1 for n in range(10)]


@pytest.mark.parametrize(
    ("rows", "aspect", "left"),
    [
        pytest.param(
            objects(
                {"name": "quality", "value": "n", "source": "ANNOTATION"}
                | {"dataType": "NUMERIC"},
                {"name": "leak", "value": 0.2, "source": "EVAL", "dataType": "NUMERIC"},
                column="scores",
                source="input",
            ),
            "quality",
            "EVAL",
            id="Langfuse without a session",
        ),
        pytest.param(
            objects(
                {"name": "quality", "score": "n", "annotator_kind": "HUMAN"},
                {"name": "quality", "score": 1, "annotator_kind": "LLM"},
                column="annotations",
            ),
            "quality",
            "LLM",
            id="a person and a model",
        ),
        pytest.param(
            objects(
                {"aspect": "tone", "rating": "n"},
                {"aspect": "facts", "rating": 2},
            ),
            "tone",
            "",
            id="two aspects",
        ),
        pytest.param(
            objects(
                {"name": "tone", "value": "n"},
                {"name": "facts", "value": 2},
                column="scores",
            ),
            "tone",
            "",
            id="scores by name",
        ),
    ],
)
def test_objects_that_name_what_they_rate_are_of_aspects(
    rows: list[dict[str, Any]], aspect: str, left: str
) -> None:
    labels = read_labels(rows, aspect=aspect)
    assert labels.scores.tolist() == OWN
    assert plain(rows)[1] == ({not_of_people(left): 10} if left else {})


def test_names_may_be_raters_and_then_it_is_said() -> None:
    rows = objects(
        {"name": "ann", "value": "n"}, {"name": "bob", "value": 3}, column="score"
    )
    labels = read_labels(rows)
    assert labels.scores.tolist() == [(own + 3) / 2 for own in OWN]
    assert any(
        "names in its objects were taken as raters" in w for w in labels.warnings
    )


def test_findings_and_scores_of_judges_are_no_ratings() -> None:
    rows = objects(
        {"aspect": "facts", "label": "major", "start": 1, "end": 4}, column="errors"
    )
    scores = objects({"aspect": "facts", "score": 3}, column="llm_scores")
    for n, (row, scored) in enumerate(zip(rows, scores, strict=True)):
        row |= {"score": n % 5 + 1, "llm_scores": scored["llm_scores"]}
    assert recognised(rows, "rows") is None
    assert read_labels(rows).scores.tolist() == OWN


def test_prodigy_choices_and_decisions() -> None:
    rows = [
        {
            "text": output,
            "meta": {"source": source},
            "options": [],
            "accept": [str(own)],
        }
        | {"answer": "ignore" if own == 3 else "accept", "_input_hash": own}
        for own, (source, output) in zip(OWN, TEXTS, strict=True)
    ]
    labels = read_labels(rows)
    assert labels.scores.tolist() == [own for own in OWN if own != 3]
    assert labels.rows[0].source == TEXTS[0][0]
    for row, own in zip(rows, OWN, strict=True):
        del row["accept"]
        row["answer"] = ("reject", "accept", "ignore")[own % 3]
    labels = read_labels(rows, min_rows=4)
    assert labels.kind == "binary"
    assert labels.scores.tolist() == [own % 3 for own in OWN if own % 3 < 2]


# Ratings that were rejected


@pytest.mark.parametrize(
    "column", ["AssignmentStatus", "ASSIGNMENT:status", "status", "review_status"]
)
def test_a_rating_that_was_rejected_is_no_label(column: str) -> None:
    rows = [
        {"source": source, "output": output, "rating": own}
        | {column: "Rejected" if own == 4 else "Approved"}
        for own, (source, output) in zip(OWN, TEXTS, strict=True)
    ]
    labels = read_labels(rows)
    assert labels.scores.tolist() == [own for own in OWN if own != 4]
    assert [reason for _, reason in labels.account.skipped] == [
        "a rating marked 'Rejected'"
    ] * 2
    # of anything else, and as the rating itself, it is no status of a label
    ordered = [{"order_status": row.pop(column), **row} for row in map(dict, rows)]
    assert read_labels(ordered).scores.tolist() == OWN
    decided = [{k: row[k] for k in ("source", "output", column)} for row in rows]
    labels = read_labels(decided, columns={"score": column})
    assert labels.scores.tolist() == [float(own != 4) for own in OWN]


def test_a_verdict_of_ours_is_no_persons_rating(tmp_path: Path) -> None:
    """A judge of one aspect names it, as a tool's rating does: the label beside it is what people said."""
    verdict = {"score": 0.6, "percent": 60.0, "failure": None, "aspect": "tone"}
    rows = [
        {"source": source, "output": output, "verdict": verdict, "label": "pass"}
        for source, output in TEXTS
    ]
    rows[0]["label"] = "fail"
    labels = read_labels(write(tmp_path / "scored.jsonl", rows))
    assert scores(labels) == [0.0, *[1.0] * 9]
