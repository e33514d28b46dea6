"""When texts count as the same, what that joins, and what it must not join."""

import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from judgesmith import likeness
from judgesmith.datasets.duplicates import SHARE, merge, near_pairs
from judgesmith.datasets.loading import iter_rows, read_labels
from judgesmith.datasets.records import Labels
from judgesmith.datasets.row import Row
from judgesmith.datasets.splits import assert_disjoint, group_folds
from judgesmith.errors import LeakError
from judgesmith.likeness import NEAR, alike, folded, same_output, same_row

DATA = Path(os.environ.get("JUDGESMITH_DATA", ""))


def words(rng: random.Random, count: int) -> list[str]:
    return [
        "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(count)
    ]


def row(n: int, source: str, output: str, score: float = 0.0) -> Row:
    return Row(
        id=f"r{n}",
        output=output,
        source=source,
        doc_id=f"d{n}",
        group=f"g{n}",
        scores={"overall": score},
        line=n + 1,
    )


def texts(count: int, length: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(words(rng, length)) for _ in range(count)]


class TestFolding:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("The hall is closed.", "the  hall\nis CLOSED"),
            ("don't stop", "dont stop"),
            ("naïve café", "naive cafe"),
            ("ﬁne ｔｅｘｔ", "fine text"),
            ("pass\xadword\u200b here", "password here"),
            ("nul\x00 byte", "nul byte"),
            ("Straße", "STRASSE"),
            ("İstanbul", "istanbul"),
            ("今日は、良い。", "今日は良い"),
            ("😀 😀", "😀😀"),
            ("\ud800 x", "\ud800  X"),
        ],
    )
    def test_the_same_words(self, one: str, other: str) -> None:
        assert folded(one).key == folded(other).key != ""
        assert alike(folded(one), folded(other))

    @given(
        st.text(max_size=60),
        st.sampled_from(["\u200b", "\u0301", "\u00ad", "\ufe0f", "'"]),
        st.integers(0, 60),
    )
    def test_what_is_not_seen_changes_nothing(
        self, text: str, mark: str, at: int
    ) -> None:
        assert folded(text[:at] + mark + text[at:]).key == folded(text).key

    def test_one_word_of_eight_may_differ_and_of_seven_none(self) -> None:
        eight, seven = words(random.Random(0), 8), words(random.Random(1), 7)
        assert NEAR == 1 - 1 / 8
        assert same_output(" ".join(eight), " ".join([*eight[:3], "other", *eight[4:]]))
        assert not same_output(
            " ".join(seven), " ".join([*seven[:3], "other", *seven[4:]])
        )

    @given(
        st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60),
        st.lists(st.tuples(st.integers(0, 60), st.sampled_from("+-=")), max_size=9),
    )
    def test_texts_are_alike_by_their_words_alone(
        self, one: list[str], edits: list[tuple[int, str]]
    ) -> None:
        other = list(one)
        for place, edit in edits:
            end = place if edit == "+" else place + 1
            other[place:end] = [] if edit == "-" else ["z"]
        distance = Levenshtein.distance(one, other)
        near = bool(other) and distance <= (1 - NEAR) * max(len(one), len(other))
        assert alike(folded(" ".join(one)), folded(" ".join(other))) == near
        assert alike(folded(" ".join(other)), folded(" ".join(one))) == near

    def test_few_words_say_nothing_without_the_source(self) -> None:
        assert not same_output("I don't know.", "I don't know.")
        assert not same_row(
            "one source", "I don't know.", "another one", "I don't know."
        )
        assert same_row("one source", "I don't know.", "One source!", "i dont know")
        assert not same_row("", "", "", "")


class TestMerging:
    def test_what_is_merged_is_said_with_an_example(self) -> None:
        long = texts(40, 12)
        rows = [row(n, long[n], long[n + 20]) for n in range(20)]
        rows.append(row(20, long[0].upper(), long[20] + "\n"))
        rows.append(row(21, "another source", long[21].title()))
        merged = merge(rows)
        assert merged.groups[20] == "g0"
        assert merged.groups[21] == "g1"
        (said,) = merged.warnings(rows, "labels.csv")
        assert "1 equal output, 1 equal row" in said
        assert "rows r0 and r20" in said
        assert said.startswith("labels.csv: ")

    def test_a_refusal_that_many_documents_got_joins_nothing_and_is_said(self) -> None:
        long = texts(80, 12)
        refusal = "I am sorry, but I cannot answer this question."
        rows = [row(n, long[n], refusal if n % 2 else long[n + 40]) for n in range(40)]
        merged = merge(rows)
        assert len(set(merged.groups)) == 40
        (said,) = merged.warnings(rows, "t")
        assert "20 rows of many documents have the same output" in said
        assert "rows r1 and r3" in said

    def test_a_chain_of_small_changes_does_not_swallow_everything(self) -> None:
        rng = random.Random(0)
        parts = words(rng, 10)
        chain = []
        for n in range(
            100
        ):  # each differs from the one before in one word, the first and the eleventh in all
            parts[n % 10] = words(rng, 1)[0]
            chain.append(" ".join(parts))
        rows = [
            row(n, source, output)
            for n, (source, output) in enumerate(
                zip(texts(100, 12), chain, strict=True)
            )
        ]
        merged = merge(rows)
        assert max(Counter(merged.groups).values()) <= SHARE * 100
        assert merged.left
        assert not merged.left[0][0].equal

    def test_rows_that_repeat_both_texts_are_joined_however_many(self) -> None:
        source, output = texts(2, 16)
        rows = [row(n, source + " " * n, output + "!" * n) for n in range(30)]
        rows += [
            row(30 + n, text, text[::-1])
            for n, text in enumerate(texts(30, 10, seed=5))
        ]
        assert Counter(merge(rows).groups)["g0"] == 30

    @given(st.integers(0, 10_000), st.integers(10, 60))
    def test_merging_again_changes_nothing_and_splits_are_disjoint(
        self, seed: int, count: int
    ) -> None:
        rng = random.Random(seed)
        pool = texts(max(3, count // 2), 9, seed)
        rows = [
            row(
                n,
                rng.choice(pool),
                rng.choice([*pool, "Yes.", ""]),
                float(rng.randint(1, 5)),
            )
            for n in range(count)
        ]
        once = merge(rows)
        again = merge(once.applied(rows))
        assert again.groups == once.groups
        labels = Labels(tuple(rows), "overall", (1.0, 5.0))
        if len(set(once.groups)) > 1 and len({r.scores["overall"] for r in rows}) > 1:
            for fold in group_folds(labels, k=3):
                assert_disjoint(fold.train, fold.heldout)

    def test_found_pairs_are_those_of_the_rule(self) -> None:
        rng = random.Random(3)
        made = []
        for length in range(8, 60):
            parts = words(rng, length)
            made.append(" ".join(parts))
            for changes in (1, 2, length // 8, length // 6):
                other = list(parts)
                for place in rng.sample(range(length), changes):
                    other[place] = words(rng, 1)[0]
                made.append(" ".join(other))
        distinct = [folded(text) for text in dict.fromkeys(made)]
        every = {
            (i, j)
            for j in range(len(distinct))
            for i in range(j)
            if alike(distinct[i], distinct[j])
        }
        found = set(near_pairs(distinct))
        assert found <= every
        assert len(found) >= 0.99 * len(every) > 50

    def test_sizes_that_grow_fourfold_take_fourfold_comparisons(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of a template that differs in one slot, where every pair is nearly equal."""
        counted = 0

        def count(one: object, other: object) -> bool:
            nonlocal counted
            counted += 1
            return True

        monkeypatch.setattr("judgesmith.datasets.duplicates.alike", count)
        steps = []
        for size in (200, 800):
            counted = 0
            template = " ".join(words(random.Random(0), 11))
            list(near_pairs([folded(f"{template} slot{n}") for n in range(size)]))
            steps.append(counted)
        assert steps[1] <= 8 * steps[0]


class TestHeldOutFiles:
    def test_a_nearly_equal_row_of_another_file_is_refused_with_its_lines(self) -> None:
        long = texts(24, 12)
        made = [row(n, long[n], long[n + 12], n % 3) for n in range(12)]
        train = Labels(tuple(made[:8]), "overall", (0, 5))
        near = " ".join(["other", *long[12 + 2].split()[1:]])
        other = Labels(
            (*made[8:], row(20, "quite another source of a text", near)),
            "overall",
            (0, 5),
        )
        assert_disjoint(train, Labels(tuple(made[8:]), "overall", (0, 5)))
        with pytest.raises(
            LeakError,
            match=r"held-out row r20 .* repeats the output of training row r2",
        ):
            assert_disjoint(train, other)


#: Set: groups before and after, rows of the largest group before and after. What is written freely stays as it is;
#: of template-made outputs (bagel, sfhot, sfres) and of short replies (personachat) much is really repeated.
SETS = {
    "bagel": (202, 53, 2, 48),
    "dhp_sumpubmed": (300, 300, 1, 1),
    "hanna": (64, 64, 11, 11),
    "newsroom": (30, 23, 7, 21),
    "openmeva_roc": (200, 200, 5, 5),
    "personachat_usr": (60, 37, 5, 25),
    "qags_cnndm": (235, 235, 1, 1),
    "sfhot": (398, 343, 10, 15),
    "sfres": (580, 542, 6, 12),
    "summeval": (100, 100, 16, 16),
    "topical_chat": (38, 38, 12, 12),
    "wiki_da": (302, 302, 5, 5),
}


@pytest.mark.skipif(
    not (DATA / "bagel.jsonl").exists(),
    reason="JUDGESMITH_DATA names no folder with the benchmark sets",
)
@pytest.mark.parametrize("name", SETS)
def test_benchmark_sets_keep_their_groups_apart(name: str) -> None:
    rows = [row for row, _ in iter_rows(DATA / f"{name}.jsonl")]
    before, after = Counter(row.group for row in rows), Counter(merge(rows).groups)
    assert (len(before), len(after), max(before.values()), max(after.values())) == SETS[
        name
    ]


class TestTemplatedReplies:
    """Replies made from one template, to questions made from one, each a document of its own by the file."""

    def rows(self, *, stated: bool) -> list[Row]:
        asked = "Please tell me what you know about topic number {} in our manual"
        reply = (
            "We do not know anything about topic number {}, so please ask again later."
        )
        others = texts(60, 12)
        made = [
            row(n, asked.format(n), reply.format(n) if n % 2 else others[n], n % 5)
            for n in range(60)
        ]
        return (
            made if stated else [replace(one, doc_id=f"doc:{one.line}") for one in made]
        )

    def test_the_documents_of_the_file_decide_above_the_share(self) -> None:
        rows = self.rows(stated=True)
        merged = merge(rows)
        assert len(set(merged.groups)) == 60
        (warning,) = merged.warnings(rows, "f")
        assert "30 rows of many documents have nearly the same texts" in warning
        assert f"more than {SHARE:.0%} of the documents" in warning
        assert "never in each other's prompt" in warning
        labels = Labels(tuple(rows), "overall", (0, 4))
        for split in group_folds(labels, k=4):
            assert_disjoint(split.train, split.heldout)

    def test_without_documents_in_the_file_they_stay_together(self) -> None:
        assert max(Counter(merge(self.rows(stated=False)).groups).values()) == 30

    def test_equal_texts_stay_together_whatever_the_file_says(self) -> None:
        rows = self.rows(stated=True)
        rows = [*rows, *(row(60 + n, rows[1].source, rows[1].output) for n in range(9))]
        assert Counter(merge(rows).groups).most_common(1)[0][1] == 10

    def test_few_stay_together_as_before(self) -> None:
        few = self.rows(stated=True)[:8]
        rows = [
            *few,
            *(
                row(100 + n, a, b)
                for n, (a, b) in enumerate(
                    zip(texts(60, 12, 1), texts(60, 12, 2), strict=True)
                )
            ),
        ]
        assert Counter(merge(rows).groups).most_common(1)[0][1] == 8

    @pytest.mark.parametrize("stated", [True, False])
    def test_another_share_is_told_from_the_same_labels(self, stated: bool) -> None:
        rows = self.rows(stated=stated)
        records = [
            {
                "id": r.id,
                "source": r.source,
                "output": r.output,
                "score": r.scores["overall"],
            }
            | ({"doc_id": r.doc_id} if stated else {})
            for r in rows
        ]
        labels = read_labels(records)
        assert labels.regrouped(SHARE) is labels
        for share, groups in (
            (0.5, 31),
            (SHARE, 60 if stated else 31),
            (0.02, 60 if stated else 31),
        ):
            again = labels.regrouped(share)
            assert len(set(again.groups)) == groups
            assert again.template_share == share
            notes = [note for note in again.warnings if "split" in note]
            assert notes, again.warnings
            assert f"the 60 rows are {groups} groups" in notes[-1]
            assert f"more than {100 * share:g}% of the documents" in notes[-1]
            assert again.regrouped(SHARE) == labels
            assert again.grouped is again
            for split in group_folds(again, k=4):
                assert split.train.template_share == share
                assert_disjoint(split.train, split.heldout)
        assert len(set(labels.regrouped(1).groups)) == 1


@given(st.text(alphabet="aB é\u0301-\u200b漢 。\n'", max_size=60))
def test_a_long_text_is_folded_in_parts_as_in_one(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        whole = likeness.folded.__wrapped__(text)
        patch.setattr(likeness, "PIECE", 3)
        assert likeness.folded.__wrapped__(text) == whole
