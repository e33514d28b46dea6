"""What a record becomes, and which rows belong together."""

import math
import pickle

import numpy as np
import pytest

from judgesmith.datasets.columns import Columns
from judgesmith.datasets.ratings import read_ratings
from judgesmith.datasets.records import Labels, merge_groups
from judgesmith.datasets.row import Row
from judgesmith.datasets.scales import infer_scale
from judgesmith.errors import LabelsError, OptionError
from judgesmith.rows import as_text


def row(number: int, source: str = "s", output: str = "o", **rest: object) -> Row:
    given: dict[str, object] = {"doc_id": f"d{number}", "group": f"g{number}", **rest}
    return Row(id=str(number), output=output, source=source, line=number, **given)  # type: ignore[arg-type]


def labels(*rows: Row, scale: tuple[float, float] = (1, 5)) -> Labels:
    return Labels(rows, "overall", scale)


class TestLabels:
    rows = tuple(row(n, f"s{n}", scores={"overall": float(n)}) for n in (1, 2, 3))

    def test_scores_and_groups_stand_in_row_order(self) -> None:
        made = labels(*self.rows, row(4, scores={"fluency": 3.0}))
        assert made.scores[:3].tolist() == [1.0, 2.0, 3.0]
        assert math.isnan(made.scores[3])
        assert made.groups == ["g1", "g2", "g3", "g4"]

    def test_subset_takes_rows_in_the_given_order_and_keeps_the_rest(self) -> None:
        part = labels(*self.rows).subset(np.array([2, 0]))
        assert [r.id for r in part.rows] == ["3", "1"]
        assert (part.aspect, part.scale, len(part)) == ("overall", (1, 5), 2)

    def test_rows_can_be_pickled_and_hashed(self) -> None:
        again = pickle.loads(pickle.dumps(self.rows))
        assert again == self.rows
        assert hash(again) == hash(self.rows)

    @pytest.mark.parametrize(
        "other",
        [
            labels(*rows[::-1]),
            labels(*rows, scale=(1, 7)),
            labels(*rows[:2]),
            labels(*rows[:2], row(3, "s3", scores={"overall": 3.5})),
            labels(*rows[:2], row(3, "s3", "other output", scores={"overall": 3.0})),
            labels(*rows[:2], row(3, "s3", context="c", scores={"overall": 3.0})),
        ],
        ids=["order", "scale", "fewer", "score", "output", "context"],
    )
    def test_fingerprint_changes_with(self, other: Labels) -> None:
        assert (
            other.fingerprint()
            != labels(*self.rows).fingerprint()
            == labels(*self.rows).fingerprint()
        )


def test_joining_groups_is_transitive() -> None:
    # 1 and 2 share a text, 2 and 3 a document, 3 and 4 a group
    rows = [
        row(1, "a", "x"),
        row(2, "a", "x", doc_id="D"),
        row(3, "b", "y", doc_id="D", group="G"),
        row(4, "c", "z", group="G"),
        row(5, "d", "w"),
    ]
    assert [r.group for r in merge_groups(rows)] == ["g1", "g1", "g1", "g1", "g5"]


class TestColumns:
    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            (["source", "output"], {"source": "source", "output": "output"}),
            (["Article", "SUMMARY"], {"source": "Article", "output": "SUMMARY"}),
            (["text", "summary"], {"source": "text", "output": "summary"}),
            (["text"], {"output": "text"}),
            (["prompt", "text"], {"source": "prompt", "output": "text"}),
            (
                ["history", "response", "knowledge"],
                {"source": "history", "output": "response", "context": "knowledge"},
            ),
            (
                ["input", "history", "response"],
                {"source": "input", "output": "response", "context": "history"},
            ),
            (["output", "response"], {"output": "output"}),
            (
                ["Model Name", "answer", "gold-answer"],
                {
                    "system": "Model Name",
                    "output": "answer",
                    "reference": "gold-answer",
                },
            ),
            (
                ["input_id", "group", "id", "hypothesis"],
                {
                    "doc_id": "input_id",
                    "group": "group",
                    "id": "id",
                    "output": "hypothesis",
                },
            ),
        ],
    )
    def test_roles_are_found_by_name(
        self, names: list[str], expected: dict[str, str]
    ) -> None:
        assert Columns.find(names, "f", scores_needed=False).texts == expected

    def test_columns_are_found_by_words_where_they_hold_texts(self) -> None:
        names = [
            "User question",
            "Bot reply",
            "expected answer",
            "Reply time",
            "answer type",
        ]
        records = [
            dict(
                zip(
                    names,
                    [
                        "what is it then",
                        "it is this one",
                        "it is that one",
                        "12 s",
                        "short one",
                    ],
                    strict=True,
                )
            )
        ]
        assert Columns.find(names, "f", scores_needed=False, records=records).texts == {
            "source": "User question",
            "output": "Bot reply",
            "reference": "expected answer",
        }

    @pytest.mark.parametrize(
        ("names", "chosen", "said"),
        [
            (
                "article document summary",
                {},
                (
                    "columns 'article' and 'document' could each be the source; say which "
                    "with --columns source=NAME"
                ),
            ),
            (
                "a b",
                {"output": "x"},
                "there is no column 'x' for the output; the columns are: a, b",
            ),
            (
                "a",
                {"outptu": "a"},
                "there is no role 'outptu'; the roles are id, output",
            ),
            (
                "a b",
                {},
                (
                    "no column for the output text; the columns are: a, b; name it with "
                    "--columns output=NAME"
                ),
            ),
            (
                "output label rating",
                {},
                "columns 'label' and 'rating' could each be the score",
            ),
        ],
    )
    def test_what_cannot_be_found(
        self, names: str, chosen: dict[str, str], said: str
    ) -> None:
        with pytest.raises((LabelsError, OptionError), match=said):
            Columns.find(names.split(), "f.csv", chosen=chosen)

    def test_a_chosen_column_settles_it(self) -> None:
        names = ["article", "document", "summary"]
        texts = Columns.find(
            names, "f", chosen={"source": "DOCUMENT"}, scores_needed=False
        ).texts
        assert texts["source"] == "document"

    def test_words_for_a_score_matter_only_where_scores_are_needed(self) -> None:
        assert (
            Columns.find(
                ["output", "label", "rating"], "f", scores_needed=False
            ).aspects
            == {}
        )
        assert Columns.find(["output", "label", "score"], "f").aspects == {
            "overall": ("score", ())
        }

    @pytest.mark.parametrize(
        ("record", "scores", "ratings"),
        [
            ({"score": 4}, {"overall": 4.0}, {}),
            ({"score": [4, 5, 3]}, {"overall": 4.0}, {"overall": [4.0, 5.0, 3.0]}),
            ({"score": "[4, 5]"}, {"overall": 4.5}, {"overall": [4.0, 5.0]}),
            (
                {"score": {"ann": 2, "bob": 3}},
                {"overall": 2.5},
                {"overall": [2.0, 3.0]},
            ),
            (
                {"score": "{'ann': 2, 'bob': 3}"},
                {"overall": 2.5},
                {"overall": [2.0, 3.0]},
            ),
            ({"rater_1": 1, "rater_2": "2"}, {"overall": 1.5}, {"overall": [1.0, 2.0]}),
            (
                {"annotator 1": 1, "annotator 2": None, "annotator 3": 2},
                {"overall": 1.5},
                {"overall": [1.0, 2.0]},
            ),
            ({"score_1": 1, "score_2": 4}, {"overall": 2.5}, {"overall": [1.0, 4.0]}),
            (
                {"score": 3, "rater_1": 1, "rater_2": 4},
                {"overall": 3.0},
                {"overall": [1.0, 4.0]},
            ),
            ({"scores": {"a": 1, "b": 2.5}}, {"a": 1.0, "b": 2.5}, {}),
            ({"scores": '{"a": 1, "b": null}'}, {"a": 1.0}, {}),
            (
                {"scores": {"a": [1, 2], "b": {"r": 3, "q": 4}}},
                {"a": 1.5, "b": 3.5},
                {"a": [1, 2], "b": [3, 4]},
            ),
            ({"scores": [1, 2]}, {"overall": 1.5}, {"overall": [1.0, 2.0]}),
            ({"scores.flow": 1, "score_tone": 2}, {"flow": 1.0, "tone": 2.0}, {}),
        ],
    )
    def test_scores_in_every_shape(
        self, record: dict, scores: dict, ratings: dict
    ) -> None:  # type: ignore[type-arg]
        made, problems = Columns.find(["output", *record], "f").row(
            {"output": "o", **record}, 1
        )
        assert (dict(made.scores), problems) == (scores, {})
        assert {name: list(each) for name, each in made.ratings.items()} == ratings

    def test_ids_are_derived_where_none_are_given(self) -> None:
        columns = Columns.find(["source", "output"], "f", scores_needed=False)
        one, same, other = (
            columns.row({"source": s, "output": "o"}, n)[0]
            for n, s in enumerate("aab", 1)
        )
        assert [one.id, same.id, other.id] == ["1", "2", "3"]
        # sha256("a") starts with ca978112ca1b
        assert (
            one.doc_id == same.doc_id == one.group == "doc:ca978112ca1b" != other.doc_id
        )
        # Without a source the output stands for the document, so that line 7 of two files is not one document:
        # sha256("o") starts with 65c74c15a686
        assert (
            columns.row({"source": " ", "output": "o"}, 7)[0].doc_id
            == "doc:65c74c15a686"
        )
        assert (
            columns.row({"source": " ", "output": ""}, 7)[0].doc_id
            != columns.row({"source": ""}, 8)[0].doc_id
        )


class TestCells:
    @pytest.mark.parametrize(
        ("cell", "text"),
        [
            ("a ", "a "),
            (None, None),
            (float("nan"), None),
            ("  ", None),
            (7, "7"),
            (7.0, "7"),
            (7.5, "7.5"),
            (["hi", "you"], "hi\nyou"),
            ([{"role": "user"}], '[{"role": "user"}]'),
            (np.array(["a", "b"]), "a\nb"),
        ],
    )
    def test_as_text(self, cell: object, text: str | None) -> None:
        assert as_text(cell) == text

    @pytest.mark.parametrize(
        ("cell", "why"),
        [
            ("good", "'good' is not a number"),
            ("1_000", "'1_000' is not a number"),
            ("4,5", "'4,5' could be a decimal comma or two ratings; write 4.5"),
            ("-inf", "'-inf' is not a number"),
            (10**400, "is not a finite number"),
            ([4, "x"], "'x' is not a number"),
            ([[4]], "is not a number"),
            ("[4,", "is not a number"),
        ],
    )
    def test_what_is_no_score(self, cell: object, why: str) -> None:
        with pytest.raises(ValueError) as error:
            read_ratings(cell)
        assert why in str(error.value)


@pytest.mark.parametrize(
    ("values", "rows", "scale"),
    [
        ([0, 1], 8, [0, 1]),
        ([0.2, 0.9], 8, [0, 1]),
        ([1, 3], 8, [1, 5]),
        ([1, 3], 30, [1, 3]),
        ([1, 2.9], 30, [1, 5]),
        ([1.3, 4.7], 8, [1, 5]),
        ([0, 4], 8, [0, 5]),
        ([1, 6], 30, [1, 6]),
        ([1, 6], 29, [1, 7]),
        ([2, 9], 8, [1, 10]),
        ([0, 9], 8, [0, 10]),
        ([3, 98.7], 8, [0, 100]),
        ([3, 14], 8, [3, 14]),
        ([-25, 0], 8, [-25, 0]),
        ([0, 101], 8, [0, 101]),
    ],
)
def test_infer_scale(values: list[float], rows: int, scale: list[float]) -> None:
    assert infer_scale(np.array(values, dtype=float), rows) == tuple(scale)
