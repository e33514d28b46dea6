"""Benchmark sets: cards, where they are found, fetching from a server on loopback that misbehaves, and converters.

The converters are tested on small files made here. Where the real data are on this machine (JUDGESMITH_DATA, with the
folder raw_samples beside it), they are tested on the first rows of the real files too.
"""

import hashlib
import http.server
import json
import math
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from judgesmith.datasets import read_labels
from judgesmith.datasets.benchmarks import catalog as benchmarks
from judgesmith.datasets.benchmarks.catalog import (
    GITHUB,
    BenchmarkCard,
    benchmark,
    cache_dir,
    count_here,
    list_benchmarks,
    locate,
    resolve,
)
from judgesmith.datasets.benchmarks.converters import CONVERTERS, convert
from judgesmith.errors import LabelsError

REAL = os.environ.get("JUDGESMITH_DATA")  # read before any test changes it
REAL_DATA = Path(REAL).expanduser() if REAL else None
RAW = REAL_DATA.parent / "raw_samples" if REAL_DATA else None
needs_data = pytest.mark.skipif(
    REAL_DATA is None or not REAL_DATA.is_dir(), reason="JUDGESMITH_DATA names no folder with the benchmark sets"
)
needs_raw = pytest.mark.skipif(
    RAW is None or not (RAW / "index.json").is_file(),
    reason="there is no raw_samples beside the folder JUDGESMITH_DATA",
)

FETCHABLE = {"qags_cnndm", "qags_xsum", "newsroom", "topical_chat", "sfres", "sfhot", "hanna", "wiki_da"}


@pytest.fixture(autouse=True)
def nothing_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No data folder, an empty cache, no proxy between the test and its server."""
    monkeypatch.delenv("JUDGESMITH_DATA", raising=False)
    monkeypatch.setenv("JUDGESMITH_DATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "*")


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- small files in the formats of the origins, made up -----------------------------------------------------------

ASPECTS_OF_DIALOGUE = {
    "understandability": 1.0,
    "naturalness": 2.5,
    "coherence": 2,
    "engagingness": 1,
    "groundedness": 0,
}


def qags_raw() -> list[dict[str, Any]]:
    return [
        {
            "doc_id": index, "system_id": 0, "source": f"Article {index} .", "reference": f"Article {index} .",
            "system_output": f"Summary {index} .", "scores": {"consistency": index / 11},
        }
        for index in range(12)
    ]  # fmt: skip


def acts_raw() -> list[dict[str, Any]]:
    acts = ["inform(a)", "inform(b)", "inform(a)", "inform(c)"]
    return [
        {
            "doc_id": index, "source": act, "reference": f"Reference {index} .", "system_output": f"Said {index} .",
            "scores": {"informativeness": 1 + index % 5, "naturalness": 6.0 - index % 2, "overall": 1.5 + index % 4},
        }
        for index, act in enumerate(acts * 3)
    ]  # fmt: skip


def chat_raw() -> list[dict[str, Any]]:
    # The first and the third context are cut from one conversation; the second begins alike and is another one.
    contexts = [
        ("do you fly ? \n no , never . \n why ? \n\n", "_nofact"),
        ("do you fly ? \n yes , often . \n\n", "planes have wings\n"),
        ("do you fly ? \n no , never . \n\n", "birds have feathers\n"),
    ]
    return [
        {
            "source": source, "context": context, "system_id": system, "system_output": f"{system} on {number} \n",
            "scores": ASPECTS_OF_DIALOGUE | {"overall": 1 + (number + len(system)) % 5},
        }
        for number, (source, context) in enumerate(contexts)
        for system in ("Original Ground Truth", "Argmax Decoding", "New Human Generated")
    ]  # fmt: skip


def newsroom_raw() -> list[dict[str, Any]]:
    return [
        {
            "doc_id": document, "source": f"One of {document}.</p><p>&quot;Two&quot; &amp; three.",
            "system_output": f"It&#x27;s <UNK> {place}",
            "scores": {"coherence": 1 + place % 5, "fluency": 4.0, "informativeness": 3.5, "relevance": 2},
        }
        for document, places in (("71", 7), ("8", 2))
        for place in range(places)
    ]  # fmt: skip


def hanna_raw() -> list[dict[str, Any]]:
    aspects = ("relevance", "coherence", "empathy", "engagement", "surprise", "complexity")
    return [
        {
            "id": number, "inputs": {"Writing Prompt": f"Prompt {number % 96}"},
            "outputs": {"Story": f"Story {number}"}, "system": "Human" if number < 96 else "GPT",
            "score": dict.fromkeys(aspects, 1 + number % 5),
        }
        for number in (0, 1, 2, 3, 95, 96, 97, 98, 99, 191)
    ]  # fmt: skip


WIKI_HEADER = (
    "sent_id,sys_name,orig_sent,simp_sent,sys_type,fluency,fluency_zscore,meaning,meaning_zscore,simplicity,"
    "simplicity_zscore"
)
WIKI_RAW = "\r\n".join(
    [WIKI_HEADER]
    + [
        f'{n},Sys-{n % 2},"A ""long"", sentence {n}.","Short, {n}.",SBMT,{n * 9}.5,0.{n}25,50,-1.5,{n},0'
        for n in range(10)
    ]
)

SYNTHETIC: dict[str, str] = {
    "qags_cnndm": json.dumps(qags_raw()),
    "qags_xsum": json.dumps(qags_raw()),
    "sfres": json.dumps(acts_raw()),
    "sfhot": json.dumps(acts_raw()),
    "topical_chat": json.dumps(chat_raw()),
    "newsroom": json.dumps(newsroom_raw()),
    "hanna": json.dumps(hanna_raw()),
    "wiki_da": WIKI_RAW,
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
GOOD_TEXTS = {"dhp_sumpubmed", "dhp_answer_equivalence", "dhp_wmt22_deen", "dhp_wmt22_zhen", "dhp_story"}


def test_all_sets_have_a_card_that_says_what_is_needed():
    cards = list_benchmarks()
    assert len(cards) == len({card.name for card in cards}) == 20
    assert {card.key for card in cards if not card.aspects} == GOOD_TEXTS
    for card in cards:
        assert card.name == f"bench/{card.key}"
        for text in (card.title, card.task, card.paper, card.licence, card.licence_note, card.aggregation):
            assert text.strip()
            assert "\n" not in text
        assert card.paper_url.startswith("https://")
        assert card.quirks
        assert 0 < card.documents <= card.rows
        assert all(worst < best < math.inf for worst, best in card.aspects.values())
        assert bool(card.unfetchable) == (card.origin is None)  # either it can be fetched, or why not is said
        json.dumps(card.to_json(), allow_nan=False)
    assert {card.key for card in cards if card.origin} == FETCHABLE == set(CONVERTERS)
    assert {card.key for card in cards if "NC" in card.licence and not card.restriction} == set()


def test_a_scale_without_a_worst_end_is_null_in_json():
    assert benchmark("rotowire_accuracy").to_json()["aspects"]["accuracy"] == [None, 0.0]
    assert benchmark("bench/wiki_da").to_json()["aspects"]["meaning"] == [0.0, 100.0]


def test_a_name_works_with_and_without_its_prefix_and_a_wrong_one_names_the_nearest():
    assert benchmark("summeval") is benchmark("bench/summeval")
    with pytest.raises(LabelsError, match=r"bench/sumeval: there is no such set; did you mean bench/summeval\?"):
        benchmark("bench/sumeval")


def test_the_cards_are_package_data():
    import tomllib

    pyproject = Path(__file__).parents[3] / "pyproject.toml"
    package_data = tomllib.loads(pyproject.read_text(encoding="utf-8"))["tool"]["setuptools"]["package-data"]
    assert any(fnmatch("cards.toml", pattern) for pattern in package_data.get("judgesmith.datasets.benchmarks", []))


@needs_raw
def test_origins_are_those_of_the_index():
    assert RAW is not None
    index = json.loads((RAW / "index.json").read_text(encoding="utf-8"))
    assert {entry["set"] for entry in index} == FETCHABLE
    for entry in index:
        origin = benchmark(entry["set"]).origin
        assert origin is not None
        for key in ("repository", "path", "commit", "bytes", "sha256"):
            assert getattr(origin, key) == entry[key], (entry["set"], key)
        assert origin.url() == f"{GITHUB}/{entry['repository']}/{entry['commit']}/{entry['path']}"


@needs_data
@pytest.mark.parametrize("card", list_benchmarks(), ids=lambda card: card.key)
def test_cards_say_what_the_real_files_hold(card: BenchmarkCard):
    assert REAL_DATA is not None
    path = REAL_DATA / f"{card.key}.jsonl"
    there = {extra.name.split(".")[1] for extra in REAL_DATA.glob(f"{card.key}.*.jsonl")}
    assert there == (set(card.extras) if path.is_file() else set())
    if not path.is_file():
        pytest.skip(f"{path.name} is not in the folder")
    rows = jsonl(path)
    documents = {row["doc_id"] for row in rows}
    part = card.key in ("newsroom", "topical_chat", "hanna")  # the rest of their documents is held back
    assert (len(rows) < card.rows) is part
    assert (len(documents) < card.documents) is part
    if not part:
        assert (len(rows), len(documents)) == (card.rows, card.documents)
    systems = {row.get("system") for row in rows}
    assert systems == {None} if card.systems is None else len(systems) == card.systems
    assert {row["task"] for row in rows} == {card.task}
    assert {aspect for row in rows for aspect in row.get("scores", {})} == set(card.aspects)
    for aspect, (worst, best) in card.aspects.items():
        assert all(worst <= row["scores"][aspect] <= best for row in rows)


# --- converters ----------------------------------------------------------------------------------------------------


def test_qags_drops_the_reference_that_is_the_source(tmp_path: Path):
    rows = converted("qags_cnndm", tmp_path)
    assert rows[3] == {
        "id": "qags_cnndm-003",
        "task": "summarization",
        "source": "Article 3 .",
        "output": "Summary 3 .",
        "system": "bottom-up",
        "doc_id": "qags_cnndm-d003",
        "scores": {"consistency": 3 / 11},
    }
    assert converted("qags_xsum", tmp_path)[3] == rows[3] | {
        "id": "qags_xsum-003", "doc_id": "qags_xsum-d003", "system": "bart"
    }  # fmt: skip


def test_equal_dialogue_acts_are_one_document(tmp_path: Path):
    rows = converted("sfhot", tmp_path)
    assert [row["doc_id"] for row in rows[:5]] == ["sfhot-m000", "sfhot-m001", "sfhot-m000", "sfhot-m002", "sfhot-m000"]
    assert rows[1]["id"] == "sfhot-0001"
    assert rows[1]["reference"] == "Reference 1 ."
    assert rows[1]["scores"] == {"informativeness": 2.0, "naturalness": 5.0, "overall": 2.5}


def test_topical_chat_finds_contexts_cut_from_one_conversation(tmp_path: Path):
    rows = converted("topical_chat", tmp_path)
    assert [row["doc_id"] for row in rows[::3]] == ["topical_chat-c00", "topical_chat-c01", "topical_chat-c02"]
    assert [row["group"] for row in rows[::3]] == ["topical_chat-g00", "topical_chat-g01", "topical_chat-g00"]
    assert rows[4]["source"] == "do you fly ?\nyes , often ."
    assert rows[4]["context"] == "planes have wings"
    assert rows[4]["system"] == "Argmax Decoding"
    assert rows[4]["output"] == "Argmax Decoding on 1"
    assert rows[4]["reference"] == "Original Ground Truth on 1"
    assert rows[4]["scores"]["naturalness"] == 2.5


def test_newsroom_names_systems_by_their_place_only_in_complete_documents(tmp_path: Path):
    rows = converted("newsroom", tmp_path)
    systems = ["lede3", "fragments", "textrank", "abstractive", "pointer_c", "pointer_n", "pointer_s"]
    assert [row["id"] for row in rows] == [f"newsroom-71-{name}" for name in systems] + ["newsroom-8-0", "newsroom-8-1"]
    assert [row.get("system") for row in rows] == [*systems, None, None]
    assert rows[0]["source"] == 'One of 71.\n"Two" & three.'
    assert rows[0]["output"] == "It's <UNK> 0"


def test_hanna_documents_are_prompts(tmp_path: Path):
    rows = converted("hanna", tmp_path)
    by_id = {row["id"]: row for row in rows}
    assert by_id["hanna-0002"]["doc_id"] == by_id["hanna-0098"]["doc_id"] == "hanna-p02"
    assert by_id["hanna-0098"]["system"] == "GPT"
    assert by_id["hanna-0191"]["doc_id"] == "hanna-p95"
    assert by_id["hanna-0098"]["source"] == "Prompt 2"
    assert by_id["hanna-0098"]["output"] == "Story 98"
    assert set(by_id["hanna-0098"]["scores"]) == set(benchmark("hanna").aspects)


def test_wiki_da_keeps_raw_and_standardised_scores(tmp_path: Path):
    row = converted("wiki_da", tmp_path)[7]
    assert row == {
        "id": "wiki_da-007-Sys-1",
        "task": "simplification",
        "source": 'A "long", sentence 7.',
        "output": "Short, 7.",
        "system": "Sys-1",
        "doc_id": "wiki_da-007",
        "scores": {"fluency": 63.5, "meaning": 50.0, "simplicity": 7.0},
        "zscores": {"fluency": 0.725, "meaning": -1.5, "simplicity": 0.0},
    }


@pytest.mark.parametrize("name", sorted(SYNTHETIC))
def test_converted_rows_have_ids_of_their_own_and_the_aspects_of_the_card(name: str, tmp_path: Path):
    rows = converted(name, tmp_path)
    assert len({row["id"] for row in rows}) == len(rows)
    assert {aspect for row in rows for aspect in row["scores"]} == set(benchmark(name).aspects)


@pytest.mark.parametrize("name", sorted(SYNTHETIC))
@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '[{"doc_id": 1}]', "[7]", "not json", '"text"', "\x00", 'sent_id,sys_name\n"1'],
    ids=["empty", "no rows", "object", "lacks fields", "number", "text", "string", "null byte", "broken csv"],
)  # fmt: skip
def test_a_file_in_another_format_is_one_clear_error(name: str, content: str, tmp_path: Path):
    path = tmp_path / original(name)
    path.write_text(content, encoding="utf-8")
    with pytest.raises(LabelsError, match=rf"^{path.name}: not in the format of {name}'s origin \("):
        convert(name, path)


@needs_raw
@pytest.mark.parametrize("name", ["qags_cnndm", "sfres", "sfhot", "hanna", "wiki_da", "newsroom"])
def test_real_rows_come_out_as_the_uniform_ones(name: str):
    assert RAW is not None and REAL_DATA is not None
    rows = convert(name, RAW / f"{name}{Path(original(name)).suffix}")
    by_id = {row["id"]: row for row in jsonl(REAL_DATA / f"{name}.jsonl")}
    assert len(rows) >= 6
    for row in rows:
        same = by_id[row["id"]]
        # The uniform rows have nine digits of the standardised scores, the origin has more.
        assert row.pop("zscores", {}) == pytest.approx(same.pop("zscores", {}), abs=1e-8)
        if name == "newsroom":
            assert same.pop("reference")  # joined from another repository
        assert row == same


@needs_data
def test_documents_and_groups_of_topical_chat_are_derived_as_in_the_uniform_rows(tmp_path: Path):
    assert REAL_DATA is not None
    uniform = jsonl(REAL_DATA / "topical_chat.jsonl")
    raw = [
        {
            "source": row["source"].replace("\n", " \n ") + " \n\n", "context": row["context"] + "\n",
            "system_id": row["system"], "system_output": row["output"] + " \n", "scores": row["scores"],
        }
        for row in uniform
    ]  # fmt: skip
    path = tmp_path / "topical_chat.json"
    path.write_text(json.dumps(raw), encoding="utf-8")
    rows = convert("topical_chat", path)
    for field in ("doc_id", "group"):
        pairs = {(row[field], same[field]) for row, same in zip(rows, uniform, strict=True)}
        # one to one: what is together there is together here, and nothing else
        assert len(pairs) == len({mine for mine, _ in pairs}) == len({theirs for _, theirs in pairs})
    assert len({row["group"] for row in rows}) < len({row["doc_id"] for row in rows})
    for row, same in zip(rows, uniform, strict=True):
        for field in ("source", "context", "output", "reference", "system", "scores"):
            assert row[field] == same[field]


@needs_data
@pytest.mark.parametrize("name", ["sfres", "sfhot", "qags_cnndm"])
def test_documents_of_whole_sets_are_numbered_as_in_the_uniform_rows(name: str, tmp_path: Path):
    assert REAL_DATA is not None
    uniform = jsonl(REAL_DATA / f"{name}.jsonl")
    raw = [
        {
            "doc_id": number, "system_id": 0, "source": row["source"], "system_output": row["output"],
            "reference": row.get("reference", row["source"]), "scores": row["scores"],
        }
        for number, row in enumerate(uniform)
    ]  # fmt: skip
    path = tmp_path / "set.json"
    path.write_text(json.dumps(raw), encoding="utf-8")
    assert convert(name, path) == uniform


# --- where a set is ------------------------------------------------------------------------------------------------


def rows_of(card: BenchmarkCard, count: int = 10) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{card.key}-{number}", "task": card.task, "source": f"s{number}", "output": f"o{number}",
            "doc_id": f"d{number}",
            "scores": {a: max(worst, -9.0) + number % 2 * 0.5 for a, (worst, _) in card.aspects.items()},
        }
        for number in range(count)
    ]  # fmt: skip


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder that JUDGESMITH_DATA names."""
    path = tmp_path / "data"
    path.mkdir()
    monkeypatch.setenv("JUDGESMITH_DATA", str(path))
    return path


def put(folder: Path, name: str, count: int = 10) -> Path:
    card = benchmark(name)
    return write_jsonl(folder / f"{card.key}.jsonl", rows_of(card, count))


def test_a_set_that_is_nowhere_says_what_to_do():
    assert (locate("bench/wiki_da").kind, locate("bench/summeval").kind) == ("fetchable", "unavailable")
    assert count_here("bench/wiki_da") is None
    with pytest.raises(LabelsError, match=r"0\.2 MB, licence CC BY-NC-SA 4\.0\) with `judgesmith get bench/wiki_da`"):
        resolve("bench/wiki_da")
    with pytest.raises(
        LabelsError, match=r"cannot be fetched \(.+\); set JUDGESMITH_DATA to a folder with summeval\.jsonl"
    ):
        resolve("bench/summeval", fetch=True)
    assert not cache_dir().exists()


def test_the_data_folder_goes_before_the_cache(folder: Path):
    cached = write_jsonl(cache_dir() / "v1" / "wiki_da.jsonl", rows_of(benchmark("wiki_da")))
    assert locate("wiki_da").kind == "cache"
    assert resolve("wiki_da") == cached
    here = put(folder, "wiki_da", 9)
    assert locate("wiki_da").kind == "folder"
    assert resolve("wiki_da") == here
    assert count_here("wiki_da") == 9


def test_a_data_folder_that_does_not_exist_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("JUDGESMITH_DATA", str(tmp_path / "typo"))
    with pytest.raises(LabelsError, match=r"JUDGESMITH_DATA: there is no folder .*typo; correct the path or unset"):
        locate("bench/wiki_da")


@needs_data
@pytest.mark.parametrize("card", [c for c in list_benchmarks() if c.key != "qags_xsum"], ids=lambda card: card.key)
def test_real_sets_load_with_every_aspect(card: BenchmarkCard, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JUDGESMITH_DATA", str(REAL_DATA))
    for aspect, (worst, best) in card.aspects.items():
        scale = (worst, best) if math.isfinite(worst) else None
        labels = read_labels(resolve(card.name), aspect=aspect, scale=scale)
        assert labels.aspect == aspect
        assert labels.scores.max() <= best


# --- fetching ------------------------------------------------------------------------------------------------------


class Mirror(http.server.ThreadingHTTPServer):
    """Serves `files`; `behaviour` makes it misbehave: wrong, cut, endless, refuse."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.files: dict[str, bytes] = {}
        self.behaviour = "good"
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mirror"


class _Answer(http.server.BaseHTTPRequestHandler):
    server: Mirror

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        content = self.server.files.get(self.path)
        behaviour = self.server.behaviour
        if content is None or behaviour == "refuse":
            self.send_error(404 if content is None else 503)
            return
        if behaviour == "wrong":
            content = content[:-1] + b"?"
        self.send_response(200)
        if behaviour != "endless":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if behaviour == "cut":
            content = content[: len(content) // 2]
        try:
            self.wfile.write(content)
            while behaviour == "endless":
                self.wfile.write(b" " * (1 << 16))
        except OSError:
            pass  # the client has hung up, as it should


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """A mirror with the made-up files, whose checksums stand on the cards instead of the real ones."""
    cards = {card.key: card for card in list_benchmarks()}
    server = Mirror()
    for name, content in SYNTHETIC.items():
        data = content.encode()
        origin = cards[name].origin
        assert origin is not None
        origin = replace(origin, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        cards[name] = replace(cards[name], origin=origin)
        server.files[f"/mirror/{origin.repository}/{origin.commit}/{origin.path}"] = data
    monkeypatch.setattr(benchmarks, "_cards", lambda: cards)
    monkeypatch.setattr(benchmarks, "_RETRIES", 0)  # a retry waits for a second
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", sorted(SYNTHETIC))
def test_a_set_is_fetched_once_converted_and_then_found(
    name: str, mirror: Mirror, capfd: pytest.CaptureFixture[str], tmp_path: Path
):
    heard: list[tuple[int, int, str]] = []
    aspect = {"hanna": "coherence", "newsroom": "coherence", "wiki_da": "fluency"}.get(name)
    path = resolve(name, fetch=True, base_url=mirror.url, progress=lambda *news: heard.append(news))
    labels = read_labels(path, aspect=aspect, scale=benchmark(name).aspects[aspect or read_labels(path).aspect])
    origin = benchmark(name).origin
    assert origin is not None
    assert mirror.asked == [f"/mirror/{origin.repository}/{origin.commit}/{origin.path}"]
    assert locate(name).kind == "cache"
    assert [row.id for row in labels.rows] == [row["id"] for row in converted(name, tmp_path)]
    assert heard[-1] == (origin.bytes, origin.bytes, f"bench/{name} from {origin.url(mirror.url)}")
    # Another time nothing is asked of the network, and a library prints nothing at all.
    assert resolve(name, fetch=True, base_url=mirror.url) == resolve(name)
    assert len(mirror.asked) == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("wrong", r"it sent another file than the pinned one \(the SHA-256 differs\)"),
        ("cut", "the download broke off"),
        ("endless", "the server sends far more than the file has"),
        ("refuse", "the server answered 503 Service Unavailable"),
    ],
)
def test_a_bad_download_is_one_clear_error_and_leaves_nothing(behaviour: str, why: str, mirror: Mirror):
    mirror.behaviour = behaviour
    with pytest.raises(
        LabelsError, match=rf"^bench/wiki_da: http://127\.0\.0\.1:\d+/mirror/feralvam.*\.csv: {why}; try"
    ):
        resolve("wiki_da", fetch=True, base_url=mirror.url)
    assert files_in(cache_dir()) == []
    assert locate("wiki_da").kind == "fetchable"
    mirror.behaviour = "good"
    assert resolve("wiki_da", fetch=True, base_url=mirror.url + "/").is_file()


def test_a_hiccup_is_tried_again(mirror: Mirror, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(benchmarks, "_RETRIES", 1)
    mirror.behaviour = "wrong"
    monkeypatch.setattr("time.sleep", lambda seconds: setattr(mirror, "behaviour", "good"))
    assert resolve("sfres", fetch=True, base_url=mirror.url).is_file()
    assert len(mirror.asked) == 2


@pytest.mark.parametrize(
    ("base_url", "why"),
    [("http://127.0.0.1:9", "no connection to http://127.0.0.1:9"), ("file:///tmp", "InvalidSchema"), ("nonsense", "")],
)
def test_a_mirror_that_is_none(base_url: str, why: str, mirror: Mirror):
    with pytest.raises(LabelsError, match=f"^bench/sfres: {base_url}/.*{why}.*; try again later, name a mirror"):
        resolve("sfres", fetch=True, base_url=base_url)
    assert files_in(cache_dir()) == []


def test_a_file_put_there_by_hand_needs_no_network_if_it_is_the_right_one(mirror: Mirror):
    mirror.behaviour = "refuse"
    with pytest.raises(LabelsError) as caught:
        resolve("sfres", fetch=True, base_url=mirror.url)
    place = Path(str(caught.value).rpartition(" at ")[2])
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"[]")
    with pytest.raises(LabelsError, match="it is not here"):
        resolve("sfres")
    place.write_text(SYNTHETIC["sfres"], encoding="utf-8")
    assert len(jsonl(resolve("sfres"))) == 12


def test_a_cache_that_cannot_be_written_is_said(mirror: Mirror, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    blocked = tmp_path / "a file"
    blocked.write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("JUDGESMITH_DATA_CACHE", str(blocked))
    with pytest.raises(LabelsError, match=r"cannot be written \(.+\); make room, or set JUDGESMITH_DATA_CACHE"):
        resolve("sfres", fetch=True, base_url=mirror.url)
