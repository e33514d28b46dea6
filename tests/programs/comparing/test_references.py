"""The reference store: what a key tells apart, once per document, several processes, damage, exchange of files."""

import asyncio
import json
import logging
import math
import sqlite3
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from judgesmith.errors import CallError, OptionError
from judgesmith.programs.comparing import references as reference_store
from judgesmith.programs.comparing.references import ReferenceKey, ReferenceStore, default_store_path, document_hash
from judgesmith.programs.comparing.synthesis import ReferenceSet
from judgesmith.programs.models import engine
from judgesmith.signatures.values import Item, Usage

KEY = ReferenceKey("a" * 64, "fluency", "b" * 12, 3, "test/model")
SET = ReferenceSet(3, {1: "Bad.", 3: "Good, «gut», 好."}, {2: "it is empty (written 3 times)"})


@pytest.fixture
def store(tmp_path: Path) -> ReferenceStore:
    return ReferenceStore(tmp_path / "deep" / "references.sqlite")


class Writer:
    """Counts how often it is asked to write."""

    def __init__(self, *, failure: Exception | None = None) -> None:
        self.calls = 0
        self.failure = failure

    async def __call__(self) -> tuple[ReferenceSet, Usage]:
        self.calls += 1
        await asyncio.sleep(0.01)
        if self.failure is not None:
            raise self.failure
        return SET, Usage(calls=3)


def test_what_was_put_comes_back(store: ReferenceStore) -> None:
    assert store.get(KEY) is None
    store.put(KEY, SET)
    assert store.get(KEY) == SET
    assert ReferenceStore(store.path).get(KEY) == SET
    assert list(store.entries()) == [(KEY, SET)]


def test_every_part_of_a_key_counts() -> None:
    others = [
        ReferenceKey("c" * 64, "fluency", "b" * 12, 3, "test/model"),
        ReferenceKey("a" * 64, "meaning", "b" * 12, 3, "test/model"),
        ReferenceKey("a" * 64, "fluency", "c" * 12, 3, "test/model"),
        ReferenceKey("a" * 64, "fluency", "b" * 12, 5, "test/model"),
        ReferenceKey("a" * 64, "fluency", "b" * 12, 3, "test/other"),
    ]
    assert len({k.digest for k in (KEY, *others)}) == 6


def test_a_documents_hash_is_of_source_and_context_alone() -> None:
    assert document_hash(Item("one", "s", "c", group="1")) == document_hash(Item("two", "s", "c", "r"))
    hashes = {
        document_hash(i) for i in (Item("o", "ab"), Item("o", "a", "b"), Item("o", "", "ab"), Item("o", "\ud800"))
    }
    assert len(hashes) == 4


def test_rows_of_one_document_write_once(store: ReferenceStore) -> None:
    write = Writer()

    async def rows() -> list[Any]:
        return await asyncio.gather(*(store.get_or_write(KEY, write) for _ in range(5)))

    got = engine.run(rows())
    assert [found for found, _ in got] == [SET] * 5
    assert sorted(usage.calls for _, usage in got) == [0, 0, 0, 0, 3]
    assert write.calls == 1
    assert math.isnan(ReferenceStore(store.path).hit_rate)
    assert (store.found, store.written, store.hit_rate) == (4, 1, 0.8)


def test_a_failure_is_raised_and_leaves_nothing_behind(store: ReferenceStore) -> None:
    with pytest.raises(CallError, match="no"):
        engine.run(store.get_or_write(KEY, Writer(failure=CallError("no"))))
    write = Writer()
    engine.run(store.get_or_write(KEY, write))
    assert (write.calls, store.written) == (1, 1)


def test_rows_that_waited_for_a_failure_did_not_pay_for_it(store: ReferenceStore) -> None:
    failure = CallError("no")
    failure.usage = Usage(calls=3)  # type: ignore[attr-defined]
    write = Writer(failure=failure)

    async def rows() -> list[Any]:
        return await asyncio.gather(*(store.get_or_write(KEY, write) for _ in range(3)), return_exceptions=True)

    got = engine.run(rows())
    assert [str(error) for error in got] == ["no"] * 3
    assert [getattr(error, "usage", Usage()).calls for error in got] == [3, 0, 0]
    assert write.calls == 1


def test_of_two_processes_the_first_that_kept_its_references_counts(store: ReferenceStore) -> None:
    other, theirs = ReferenceStore(store.path), ReferenceSet(3, {1: "Theirs.", 2: "And.", 3: "More."}, {})

    async def write() -> tuple[ReferenceSet, Usage]:
        other.put(KEY, theirs)  # while ours are being written
        return SET, Usage(calls=3)

    assert engine.run(store.get_or_write(KEY, write)) == (theirs, Usage(calls=3))
    assert store.get(KEY) == theirs


def test_copies_share_the_store(store: ReferenceStore) -> None:
    assert deepcopy(store) is store


def test_the_environment_names_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JUDGESMITH_REFERENCES", str(tmp_path / "x.sqlite"))
    assert default_store_path() == tmp_path / "x.sqlite"
    assert reference_store.reference_store() is reference_store.reference_store()


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    path.write_text("this is no database, and long enough to be looked at " * 20)
    with pytest.raises(OptionError, match="JUDGESMITH_REFERENCES"):
        ReferenceStore(path)


def test_damage_costs_the_entry_and_failure_the_store_not_the_run(
    store: ReferenceStore, caplog: pytest.LogCaptureFixture
) -> None:
    store.put(KEY, SET)
    with sqlite3.connect(store.path) as db:
        db.execute("UPDATE sets SET value = ?", (b'{"outputs": {"1": "Bad."}, "left_out": {}}',))
    assert store.get(KEY) is None
    assert list(store.entries()) == []
    with sqlite3.connect(store.path) as db:
        db.execute("DROP TABLE sets")
    write = Writer()
    with caplog.at_level(logging.WARNING):
        assert engine.run(store.get_or_write(KEY, write))[0] == SET
    assert write.calls == 1
    assert len([r for r in caplog.records if "written again" in r.message]) == 1


# Files


def test_a_file_carries_references_to_another_store(store: ReferenceStore, tmp_path: Path) -> None:
    other_key = ReferenceKey("c" * 64, "meaning", "b" * 12, 3, "test/model")
    store.put(KEY, SET)
    store.put(other_key, SET)
    path = tmp_path / "shared.jsonl"
    assert store.export_to(path, aspect="fluency") == 1
    assert store.export_to(path, writer="nobody") == 0
    assert store.export_to(path) == 2
    other = ReferenceStore(tmp_path / "other.sqlite")
    assert other.import_from(path) == (2, 0)
    assert list(other.entries()) == list(store.entries())
    again = tmp_path / "again.jsonl"
    other.export_to(again)
    assert again.read_bytes() == path.read_bytes()


def test_an_import_keeps_what_is_there_unless_told_otherwise(store: ReferenceStore, tmp_path: Path) -> None:
    store.put(KEY, SET)
    path = tmp_path / "shared.jsonl"
    store.export_to(path)
    mine = ReferenceSet(3, {1: "Mine.", 2: "Also mine.", 3: "Mine too."}, {})
    store.put(KEY, mine)
    assert store.import_from(path) == (0, 1)
    assert store.get(KEY) == mine
    assert store.import_from(path, replace=True) == (0, 1)
    assert store.get(KEY) == SET


GOOD: dict[str, Any] = {
    "format": "judgesmith.references/1", "document": "a" * 64, "aspect": "fluency", "prompt": "b" * 12, "levels": 2,
    "writer": "test/model", "outputs": {"1": "Bad.", "2": "Good."}, "left_out": {},
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"format": "judgesmith.references/2"},
        {"document": "../../etc"},
        {"prompt": "B" * 12},
        {"levels": 10},
        {"levels": "2"},
        {"levels": 3},
        {"aspect": "a\x1b[2J"},
        {"writer": ""},
        {"outputs": {"1": "Bad.", "2": " "}},
        {"outputs": {"1": "Bad."}, "left_out": {"2": "why"}},
        {"outputs": {"0": "Bad.", "2": "Good."}},
        {"outputs": {"1": "Bad.", "2": "g" * 40_001}},
        {"outputs": ["Bad.", "Good."]},
        {"key": "mine"},
        {"left_out": {"2": "both"}},
    ],
)
def test_an_untrusted_line_is_refused_and_nothing_of_the_file_is_taken(
    store: ReferenceStore, tmp_path: Path, change: dict[str, Any]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps(GOOD | change) + "\n")
    with pytest.raises(OptionError, match=r"^bad\.jsonl, line 2: "):
        store.import_from(path)
    assert list(store.entries()) == []


@pytest.mark.parametrize("line", ["{", "[]", "null", "\x00\xff", '{"outputs": ' + "[" * 5000, '{"levels": NaN}'])
def test_a_line_that_is_no_json_object_is_refused(store: ReferenceStore, tmp_path: Path, line: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(line.encode("latin-1"))
    with pytest.raises(OptionError, match="line 1: "):
        store.import_from(path)


def test_files_that_cannot_be_used(store: ReferenceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="cannot be read"):
        store.import_from(tmp_path / "none.jsonl")
    with pytest.raises(OptionError, match="cannot be written"):
        (tmp_path / "file").write_text("")
        store.export_to(tmp_path / "file" / "x.jsonl")
    monkeypatch.setattr(reference_store, "LARGEST_LINE", 100)
    (tmp_path / "long.jsonl").write_text("x" * 200)
    with pytest.raises(OptionError, match="longer than 100 bytes"):
        store.import_from(tmp_path / "long.jsonl")


def test_a_lone_surrogate_can_be_kept_and_exported(store: ReferenceStore, tmp_path: Path) -> None:
    store.put(KEY, ReferenceSet(3, {1: "a\ud800", 2: "b", 3: "c"}, {}))
    assert store.get(KEY) is not None
    assert store.export_to(tmp_path / "x.jsonl") == 1
    assert ReferenceStore(tmp_path / "o.sqlite").import_from(tmp_path / "x.jsonl") == (1, 0)


def test_a_row_that_waits_writes_where_the_first_was_cancelled(store: ReferenceStore) -> None:
    write = Writer()

    async def rows() -> Any:
        first = asyncio.ensure_future(store.get_or_write(KEY, write))
        second = asyncio.ensure_future(store.get_or_write(KEY, write))
        while write.calls == 0:
            await asyncio.sleep(0)
        first.cancel()
        return await asyncio.wait_for(second, timeout=30)

    found, usage = engine.run(rows())
    assert (found, usage.calls, write.calls) == (SET, 3, 2)
