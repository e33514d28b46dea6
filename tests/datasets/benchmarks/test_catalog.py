"""Benchmark sets: cards, where they are found, fetching from a server on loopback that misbehaves, and converters.

The converters are tested on small files made here. Where the real data are on this machine (JUDGESMITH_DATA), the cards
are compared with them.
"""

import json
import math
import os
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from json_lines import lines
from misbehaving_server import Say, Server
from origins import SYNTHETIC, WIKI, nothing_here, origins
from tables import table

from judgesmith.datasets.benchmarks import registry
from judgesmith.datasets.benchmarks.catalog import (
    benchmark,
    cache_dir,
    list_benchmarks,
    locate,
    resolve,
)
from judgesmith.datasets.benchmarks.converters import CONVERTERS, convert
from judgesmith.datasets.benchmarks.registry import BenchmarkCard
from judgesmith.datasets.loading import read_labels
from judgesmith.errors import LabelsError

__all__ = ["nothing_here", "origins"]

REAL_DATA = Path(
    os.environ.get("JUDGESMITH_DATA", "/nowhere")
).expanduser()  # read before any test changes it
needs_data = pytest.mark.skipif(
    not REAL_DATA.is_dir(),
    reason="JUDGESMITH_DATA names no folder with the benchmark sets",
)
FETCHABLE = {
    "qags_cnndm",
    "qags_xsum",
    "newsroom",
    "topical_chat",
    "sfres",
    "sfhot",
    "hanna",
    "wiki_da",
}


def original(name: str) -> str:
    origin = benchmark(name).origin
    assert origin is not None
    return Path(origin.path).name


def converted(name: str, folder: Path) -> list[dict[str, Any]]:
    path = folder / original(name)
    path.write_text(SYNTHETIC[name], encoding="utf-8", newline="")
    return convert(name, path)


# --- cards ---------------------------------------------------------------------------------------------------------

#: Without human ratings: texts that `discern` perturbs.
GOOD_TEXTS = {
    "dhp_sumpubmed",
    "dhp_answer_equivalence",
    "dhp_wmt22_deen",
    "dhp_wmt22_zhen",
    "dhp_story",
}


def test_all_sets_have_a_card_that_says_what_is_needed():
    cards = list_benchmarks()
    assert len(cards) == len({card.name for card in cards}) == 20
    assert {card.key for card in cards if not card.aspects} == GOOD_TEXTS
    for card in cards:
        assert card.name == f"bench/{card.key}"
        for text in (
            card.title,
            card.task,
            card.paper,
            card.licence,
            card.licence_note,
            card.aggregation,
        ):
            assert text.strip()
            assert "\n" not in text
        assert card.paper_url.startswith("https://")
        assert card.quirks
        assert 0 < card.documents <= card.rows
        assert all(worst < best < math.inf for worst, best in card.aspects.values())
        assert bool(card.unfetchable) == (
            card.origin is None
        )  # either it can be fetched, or why not is said
        json.dumps(card.to_json(), allow_nan=False)
    assert {card.key for card in cards if card.origin} == FETCHABLE == set(CONVERTERS)
    assert {
        card.key for card in cards if "NC" in card.licence and not card.restriction
    } == set()


def test_a_name_works_with_and_without_its_prefix_and_a_wrong_one_names_the_nearest():
    assert benchmark("summeval") is benchmark("bench/summeval")
    with pytest.raises(
        LabelsError,
        match=r"bench/sumeval: there is no such set; did you mean bench/summeval\?",
    ):
        benchmark("bench/sumeval")


@needs_data
@pytest.mark.parametrize("card", list_benchmarks(), ids=lambda card: card.key)
def test_cards_say_what_the_real_files_hold(card: BenchmarkCard):
    path = REAL_DATA / f"{card.key}.jsonl"
    there = {
        extra.name.split(".")[1] for extra in REAL_DATA.glob(f"{card.key}.*.jsonl")
    }
    assert there == (set(card.extras) if path.is_file() else set())
    if not path.is_file():
        pytest.skip(f"{path.name} is not in the folder")
    rows = lines(path)
    documents = {row["doc_id"] for row in rows}
    part = card.key in (
        "newsroom",
        "topical_chat",
        "hanna",
    )  # the rest of their documents is held back
    assert (len(rows) < card.rows) is part
    assert (len(documents) < card.documents) is part
    if not part:
        assert (len(rows), len(documents)) == (card.rows, card.documents)
    systems = {row.get("system") for row in rows}
    assert systems == {None} if card.systems is None else len(systems) == card.systems
    assert {row["task"] for row in rows} == {card.task}
    assert {aspect for row in rows for aspect in row.get("scores", {})} == set(
        card.aspects
    )
    for aspect, (worst, best) in card.aspects.items():
        assert all(worst <= row["scores"][aspect] <= best for row in rows)


# --- converters ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "place", "expected"),
    table(__file__, "converted"),
)
def test_a_row_is_converted(
    name: str, place: int, expected: dict[str, Any], tmp_path: Path
):
    assert converted(name, tmp_path)[place] == expected


def test_rows_of_one_input_share_a_document_and_those_of_one_conversation_a_group(
    tmp_path: Path,
):
    acts = [row["doc_id"] for row in converted("sfhot", tmp_path)[:5]]
    assert acts == [
        "sfhot-m000",
        "sfhot-m001",
        "sfhot-m000",
        "sfhot-m002",
        "sfhot-m000",
    ]
    chats = converted("topical_chat", tmp_path)[::3]
    assert [row["doc_id"] for row in chats] == [
        "topical_chat-c00",
        "topical_chat-c01",
        "topical_chat-c02",
    ]
    assert [row["group"] for row in chats] == [
        "topical_chat-g00",
        "topical_chat-g01",
        "topical_chat-g00",
    ]
    stories = {row["id"]: row["doc_id"] for row in converted("hanna", tmp_path)}
    assert (stories["hanna-0002"], stories["hanna-0191"]) == ("hanna-p02", "hanna-p95")


def test_newsroom_names_systems_by_their_place_only_in_complete_documents(
    tmp_path: Path,
):
    rows = converted("newsroom", tmp_path)
    systems = [
        "lede3",
        "fragments",
        "textrank",
        "abstractive",
        "pointer_c",
        "pointer_n",
        "pointer_s",
    ]
    assert [row["id"] for row in rows] == [
        f"newsroom-71-{name}" for name in systems
    ] + ["newsroom-8-0", "newsroom-8-1"]
    assert [row.get("system") for row in rows] == [*systems, None, None]


@pytest.mark.parametrize("name", sorted(SYNTHETIC))
def test_converted_rows_have_ids_of_their_own_and_the_aspects_of_the_card(
    name: str, tmp_path: Path
):
    rows = converted(name, tmp_path)
    assert len({row["id"] for row in rows}) == len(rows)
    assert {aspect for row in rows for aspect in row["scores"]} == set(
        benchmark(name).aspects
    )
    for content in ("", "[]", '[{"doc_id": 1}]', "not json", 'sent_id,sys_name\n"1'):
        path = tmp_path / original(name)
        path.write_text(content, encoding="utf-8")
        with pytest.raises(
            LabelsError, match=rf"^{path.name}: not in the format of {name}'s origin \("
        ):
            convert(name, path)


# --- where a set is ------------------------------------------------------------------------------------------------


def test_a_set_that_is_nowhere_says_what_to_do():
    assert (locate("bench/wiki_da").kind, locate("bench/summeval").kind) == (
        "fetchable",
        "unavailable",
    )
    with pytest.raises(
        LabelsError,
        match=r"0\.2 MB, licence CC BY-NC-SA 4\.0\) with `judgesmith get bench/wiki_da`",
    ):
        resolve("bench/wiki_da")
    with pytest.raises(
        LabelsError,
        match=r"cannot be fetched \(.+\); set JUDGESMITH_DATA to a folder with summeval\.jsonl",
    ):
        resolve("bench/summeval", fetch=True)
    assert not cache_dir().exists()


def test_the_data_folder_goes_before_the_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    cached, here = cache_dir() / "v1" / "wiki_da.jsonl", tmp_path / "wiki_da.jsonl"
    monkeypatch.setenv("JUDGESMITH_DATA", str(tmp_path))
    cached.parent.mkdir(parents=True)
    for path, kind in ((cached, "cache"), (here, "folder")):
        path.write_text('{"id": "a", "source": "s", "output": "o"}\n')
        assert (locate("wiki_da").kind, resolve("wiki_da")) == (kind, path)


def test_a_data_folder_that_does_not_exist_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("JUDGESMITH_DATA", str(tmp_path / "typo"))
    with pytest.raises(
        LabelsError,
        match=r"JUDGESMITH_DATA: there is no folder .*typo; correct the path or unset",
    ):
        locate("bench/wiki_da")


# --- fetching ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "aspect"),
    [("sfres", None), ("hanna", "coherence"), ("wiki_da", "fluency")],
)
def test_a_set_is_fetched_once_converted_and_then_found(
    name: str,
    aspect: str | None,
    origins: Server,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
):
    heard: list[tuple[int, int, str]] = []
    path = resolve(name, fetch=True, progress=lambda *news: heard.append(news))
    labels = read_labels(path, aspect=aspect)
    origin = benchmark(name).origin
    assert origin is not None
    assert [head.split()[1] for head in origins.headers] == [
        f"/v1/{origin.repository}/{origin.commit}/{origin.path}"
    ]
    assert locate(name).kind == "cache"
    assert [row.id for row in labels.rows] == [
        row["id"] for row in converted(name, tmp_path)
    ]
    assert heard[-1] == (origin.bytes, origin.bytes, f"bench/{name} from {origin.url}")
    # Another time nothing is asked of the network, and a library prints nothing at all.
    assert resolve(name, fetch=True) == resolve(name)
    assert len(origins.headers) == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            Say(body=WIKI[:-1].encode() + b"?"),
            r"it sent another file than the pinned one \(the SHA-256 differs\)",
        ),
        (Say(body=WIKI.encode(), cut=len(WIKI) // 2), "peer closed connection"),
        (
            Say(raw=chain([b"HTTP/1.1 200 X\r\n\r\n"], repeat(b" " * 65536))),
            "it sent another file than the pinned one",
        ),
        (Say(status=503), "Server error '503 "),
    ],
    ids=["wrong", "cut", "endless", "refused"],
)
def test_a_bad_download_is_one_clear_error_and_leaves_nothing(
    answer: Say, why: str, origins: Server
):
    good, origins.behave = origins.behave, lambda *_: answer
    with pytest.raises(
        LabelsError,
        match=rf"^bench/wiki_da: http://127\.0\.0\.1:\d+/v1/feralvam.*\.csv: {why}.*; try",
    ):
        resolve("wiki_da", fetch=True)
    assert [path for path in cache_dir().rglob("*") if path.is_file()] == []
    assert locate("wiki_da").kind == "fetchable"
    origins.behave = good
    assert resolve("wiki_da", fetch=True).is_file()


def test_the_right_file_put_there_by_hand_needs_no_network(
    origins: Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(registry, "GITHUB", "http://127.0.0.1:9")
    with pytest.raises(LabelsError, match="Connection refused") as caught:
        resolve("sfres", fetch=True)
    place = Path(str(caught.value).rpartition(" at ")[2])
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"[]")
    with pytest.raises(LabelsError, match="it is not here"):
        resolve("sfres")
    place.write_text(SYNTHETIC["sfres"], encoding="utf-8")
    assert len(lines(resolve("sfres"))) == 12


def test_a_cache_that_cannot_be_written_is_said(
    origins: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    blocked = tmp_path / "a file"
    blocked.write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("JUDGESMITH_DATA_CACHE", str(blocked))
    with pytest.raises(
        LabelsError,
        match=r"cannot be written \(.+\); make room, or set JUDGESMITH_DATA_CACHE",
    ):
        resolve("sfres", fetch=True)
