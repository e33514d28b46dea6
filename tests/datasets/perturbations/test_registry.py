"""Perturbations: every one changes what it says and nothing else, by the seed, or leaves the text out and says why."""

import re
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgesmith.datasets.perturbations.attacks import REQUEST
from judgesmith.datasets.perturbations.facts import names
from judgesmith.datasets.perturbations.ladder import perturbed_copies
from judgesmith.datasets.perturbations.registry import (
    PERTURBATIONS,
    Amounts,
    Change,
    Left,
    Pair,
    Perturbation,
    Text,
    Unperturbable,
    find_perturbations,
    pairs_of,
    sentences,
)
from judgesmith.datasets.perturbations.rules import QWERTY, inserted
from judgesmith.errors import OptionError
from judgesmith.testing import PerturbationContract, perturbations

TOWN, CATS, TALK, TEXTS = (
    perturbations.TOWN,
    perturbations.CATS,
    perturbations.TALK,
    list(perturbations.TEXTS),
)

ENGLISH = "en"


def outcomes(
    name: str, texts: list[Text] = TEXTS, **options: object
) -> dict[tuple[str, str], Pair | Left]:
    made = {}
    for outcome in pairs_of(PERTURBATIONS[name], texts, **options):  # type: ignore[arg-type]
        degree = (
            outcome.degree
            if isinstance(outcome, Pair)
            else outcome.name.partition(":")[2] or "only"
        )
        made[outcome.id, degree] = outcome
    return made


def changed(name: str, identity: str, degree: str = "minor", **options: object) -> str:
    outcome = outcomes(name, **options)[identity, degree]
    assert isinstance(outcome, Pair), outcome
    return outcome.perturbed


# -- what holds for all of them


class TestEveryPerturbation(PerturbationContract):
    @pytest.fixture(params=PERTURBATIONS)
    def perturbation(self, request: pytest.FixtureRequest) -> Perturbation:
        return PERTURBATIONS[request.param]


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.text(max_size=60), min_size=1, max_size=3),
    st.sampled_from(sorted(PERTURBATIONS)),
)
def test_no_text_is_an_error(texts: list[str], name: str) -> None:
    for outcome in pairs_of(
        PERTURBATIONS[name], [Text(str(i), t, wrong=t) for i, t in enumerate(texts)]
    ):
        assert isinstance(outcome, Left) or outcome.original != outcome.perturbed


def test_one_text_does_not_depend_on_the_company() -> None:
    alone = outcomes("typos", [TEXTS[0]], seed=5)["town", "major"]
    assert alone == outcomes("typos", TEXTS, seed=5)["town", "major"]
    assert alone != outcomes("typos", TEXTS, seed=6)["town", "major"]


def test_texts_of_one_group_are_no_other_documents() -> None:
    twins = [Text("a", TOWN, group="g"), Text("b", CATS, group="g")]
    (left,) = (
        o for o in pairs_of(PERTURBATIONS["random-answer"], twins) if o.id == "a"
    )
    assert isinstance(left, Left)
    assert "another document" in left.reason


# -- amounts


def test_the_paper_s_numbers_and_shares_of_a_text() -> None:
    summary = Amounts("summarization")
    assert [summary.count("character", d, 340) for d in ("minor", "major")] == [10, 50]  # type: ignore[arg-type]
    assert Amounts("translation").count("word", "major", 71) == 25
    relative = Amounts()
    assert relative.count("character", "minor", 340) == 10  # 0.03 * 340 = 10.2
    assert relative.count("character", "major", 340) == 51  # 0.15 * 340
    assert [relative.count("word", d, 10) for d in ("minor", "major")] == [1, 4]  # type: ignore[arg-type]
    with pytest.raises(Unperturbable, match="too short: 60 letters"):
        summary.count("character", "major", 60)


def test_exactly_k_characters_are_deleted_and_major_deletes_those_of_minor() -> None:
    minor, major = (
        changed("deletions", "town", degree, amounts=Amounts("answer"))
        for degree in ("minor", "major")
    )
    for text, k in ((minor, 5), (major, 25)):
        assert (len(TOWN) - len(text), Change.between(TOWN, text).distance) == (k, k)
        assert re.sub(r"\w", "", text) == re.sub(r"\w", "", TOWN)
    letters = iter(minor)
    assert all(c in letters for c in major)  # a subsequence


def test_consecutive_words_are_deleted() -> None:
    words, kept = (
        TOWN.split(),
        changed("word-deletion", "town", amounts=Amounts("translation")).split(),
    )
    start = next(i for i in range(len(words)) if words[:i] + words[i + 5 :] == kept)
    assert 0 <= start <= len(words) - 5


def test_slips_are_to_neighbouring_keys() -> None:
    assert set(QWERTY["g"]) == set("ftyhbv")
    assert set(QWERTY["q"]) == set("wa")
    assert set(QWERTY["1"]) == {"2"}
    assert all(
        a in QWERTY[b] for b, near in QWERTY.items() for a in near if b in QWERTY[a]
    )
    assert all(b in QWERTY[a] for b, near in QWERTY.items() for a in near)


# -- sentences


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=200))
def test_sentences_joined_are_the_text(text: str) -> None:
    assert "".join(sentences(text)) == text


def test_shuffling_keeps_every_sentence_and_the_paragraphs() -> None:
    text = "One is here. Two is there.\n\nThree is gone. Four is late."
    for degree, moved in (("minor", {2}), ("major", {3, 4})):
        made = changed(
            "shuffle", "t", degree, texts=[Text("t", text), Text("other", CATS)]
        )
        assert sorted(s.strip() for s in sentences(made)) == sorted(
            s.strip() for s in sentences(text)
        )
        assert made.count("\n\n") == 1
        places = zip(sentences(text), sentences(made), strict=True)
        assert sum(a.strip() != b.strip() for a, b in places) in moved


def test_a_sentence_is_said_again_behind_itself() -> None:
    parts = sentences(changed("rewrite-rules", "cats"))
    assert len(parts) == 5
    said = [sorted(re.findall(r"\w+", part.lower())) for part in parts]
    assert any(a == b for a, b in pairwise(said))
    assert "".join(inserted(["One. ", "Two."], 0, "New.")) == "One. New. Two."
    assert "".join(inserted(["One. ", "Two."], -1, "New.")) == "New. One. Two."


def test_endings_and_answers_of_other_documents() -> None:
    ending = changed("random-ending", "town", "only")
    assert ending.startswith(TOWN[: TOWN.index("It meets")])
    assert sentences(ending)[-1] in {sentences(t.text)[-1] for t in TEXTS[1:]}
    assert changed("random-answer", "town", "only") in {t.text for t in TEXTS[1:]}
    assert changed("wrong-ending", "town", "only") == "She bought a horse."


def test_the_most_important_sentence_is_left_out_or_an_irrelevant_one_added() -> None:
    assert (
        changed("omission", "town") == TOWN[TOWN.index("She wanted") :]
    )  # it says most of the source's words
    parts = [s.strip() for s in sentences(changed("irrelevant", "town"))]
    own = [s.strip() for s in sentences(TOWN)]
    (added,) = [s for s in parts if s not in own]
    assert added in "\n".join(t.text for t in TEXTS[1:])
    assert [s for s in parts if s != added] == own


# -- words


def test_names_by_their_capitals() -> None:
    found = [TOWN[a:b] for a, b in names(TOWN, ENGLISH)]
    assert found == [
        "Springfield",
        "Anna Lopez",
    ]  # no "The", "She", no weekday, no month
    assert [TALK[a:b] for a, b in names(TALK, ENGLISH)] == []


def test_entities_are_those_of_other_documents() -> None:
    major = changed("entities-rules", "town", "major")
    assert "Anna Lopez" not in major
    assert "Peter Black" in major
    assert "Oldham" in major
    german = outcomes(
        "entities-rules", [Text("t", "Der Hund von Otto bellt."), *TEXTS], language="de"
    )
    assert isinstance(german["t", "minor"], Left)  # every noun has a capital


def test_numbers_and_dates() -> None:
    found = changed("numbers", "town", "major")
    assert len(re.findall(r"\d+", found)) == 2
    assert not {"Monday", "12", "March", "2024"} & set(re.findall(r"\w+", found))
    may = outcomes(
        "numbers",
        [Text("m", "It may rain. You may go."), Text("d", "On 5 May it rained.")],
    )
    assert isinstance(may["m", "minor"], Left)
    assert isinstance(may["d", "minor"], Pair)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The town will not pay.", "The town will pay."),
        ("He doesn't live here.", "He does live here."),
        ("The tea is hot.", "The tea is not hot."),
        ("Nobody was hurt.", "Everybody was hurt."),
        ("We can go.", "We cannot go."),
    ],
)
def test_negation(text: str, expected: str) -> None:
    assert changed("negation", "t", texts=[Text("t", text)]) == expected
    assert isinstance(
        outcomes("negation", [Text("t", text)], language="fr")["t", "minor"], Left
    )


def test_grammar_by_rules_keeps_names_and_numbers() -> None:
    found = changed("grammar-rules", "town", "major")
    assert all(word in found for word in ("Springfield", "Anna Lopez", "12", "2024"))
    words = zip(TOWN.split(), found.split(), strict=True)
    assert 2 <= sum(a != b for a, b in words) <= 5


# -- invariances and attacks


def test_invariances_keep_the_words() -> None:
    plain = re.compile(r"[^\w\s]")
    for name in ("style", "case", "formatting"):
        for pair in outcomes(name).values():
            if isinstance(pair, Pair):
                before, after = (
                    plain.sub("", t).casefold().split()
                    for t in (pair.original, pair.perturbed)
                )
                assert after == before, name
    assert changed("style", "cafe", "only") == "red door cafe is cheap and has 4 stars."
    assert (
        changed("synonyms", "cafe", "only")
        == "red door cafe is inexpensive and has 4 stars ."
    )
    huge = [Text("t", "A huge dog, so expensive and expensive.")]
    assert (
        changed("synonyms", "t", "only", texts=huge)
        == "A huge dog, so expensive and costly."
    )


def test_attacks_address_the_judge_behind_a_wrong_text() -> None:
    for name in [n for n, p in PERTURBATIONS.items() if p.kind == "attack"]:
        for pair in outcomes(name).values():
            assert isinstance(pair, Pair)
            own = next(t.text for t in TEXTS if t.id == pair.id)
            assert pair.original != own
            assert pair.original in {t.text for t in TEXTS}
            assert pair.perturbed.startswith(pair.original)
    hidden = changed("attack-hidden", "town", "only")
    tags = "".join(chr(ord(c) - 0xE0000) for c in hidden if ord(c) > 0xE0000)
    assert tags == REQUEST
    assert REQUEST not in hidden


# -- by name


def test_perturbations_by_name_degree_and_group() -> None:
    assert [
        (p.name, degrees) for p, degrees in find_perturbations(["typos:major"])
    ] == [("typos", ("major",))]
    assert {p.name for p, _ in find_perturbations(["character"])} == {
        "deletions",
        "typos",
    }
    everything = [
        p.name for p, _ in find_perturbations(["attack", "invariance", "degradation"])
    ]
    assert (
        everything
        == list(PERTURBATIONS)
        == [p.name for p, _ in find_perturbations(["all"])]
    )
    assert all(d == ("minor",) for _, d in find_perturbations(["degradation:minor"]))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("typo", "did you mean 'typos'"),
        ("typos:huge", "no degree 'huge'"),
        ("entities-lm", "--writer"),
        ("", "there are"),
    ],
)
def test_a_wrong_name_is_said(name: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        find_perturbations([name])


def test_of_four_copies_0_5_25_and_60_percent_of_the_words_are_perturbed() -> None:
    text = " ".join(f"word{n}" for n in range(100))
    copies = perturbed_copies(text, 4)
    # .6·(1, (2/3)^2.25, (1/3)^2.25, 0)
    assert [Change.between(text, one).words for one in copies] == pytest.approx(
        [0.60, 0.24, 0.05, 0], abs=0.02
    )
    assert perturbed_copies(text, 4) == copies != perturbed_copies(text, 4, seed=1)
    assert [
        len(perturbed_copies(t, 4))
        for t in ("Four words are enough.", "橋は五月まで閉まっている。")
    ] == [4, 4]
    with pytest.raises(Unperturbable):
        perturbed_copies("Too short.", 4)


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=200), st.integers(2, 9), st.integers(0, 3))
def test_perturbed_copies_differ_and_end_with_the_text(
    text: str, levels: int, seed: int
) -> None:
    with suppress(Unperturbable):
        copies = perturbed_copies(text, levels, seed=seed)
        assert (copies[-1], len({" ".join(one.split()) for one in copies})) == (
            text,
            levels,
        )
