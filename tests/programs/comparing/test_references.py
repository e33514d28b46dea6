"""The reference store: what a key tells apart, once per document, several processes, damage."""

import asyncio
import sqlite3
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from judgesmith.programs.comparing import references as reference_store
from judgesmith.programs.comparing.references import (
    ReferenceStore,
    reference_key,
)
from judgesmith.programs.comparing.synthesis import ReferenceSet
from judgesmith.programs.models import engine
from judgesmith.signatures.values import Item, Usage

ITEM = Item("one", "s", "c")
KEY = reference_key(ITEM, "fluency", "b" * 12, 3, "test/model")
SET = ReferenceSet(
    3, {1: "Bad.", 3: "Good, «gut», 好, \ud800."}, {2: "it is empty (written 3 times)"}
)
DAMAGED = (
    b"no JSON",
    b"[]",
    b'{"outputs": {"1": "Bad.", "2": "Good."}}',
    b'{"outputs": {"one": "Bad."}, "left_out": {}}',
    b'{"outputs": {"1": "Bad.", "3": "Good."}, "left_out": {}}',
    b'{"outputs": {"1": "Bad."}, "left_out": {"2": "", "3": ""}}',
    b'{"outputs": {"1": "Bad.", "2": "Fair.", "3": "Good."}, "left_out": {"3": "both"}}',
    None,
)


@pytest.fixture
def store(tmp_path: Path) -> ReferenceStore:
    return ReferenceStore(tmp_path / "deep" / "references.sqlite")


class Writer:
    """Counts how often it is asked to write."""

    calls = 0

    async def __call__(self) -> tuple[ReferenceSet, Usage]:
        self.calls += 1
        await asyncio.sleep(0.01)
        return SET, Usage(calls=3)


def test_what_was_put_comes_back(store: ReferenceStore) -> None:
    assert store.get(KEY) is None
    store.put(KEY, SET)
    assert store.get(KEY) == ReferenceStore(store.path).get(KEY) == SET
    assert deepcopy(store) is store


def test_a_key_tells_documents_and_writers_apart_and_of_a_row_knows_nothing_else() -> (
    None
):
    def key(item: Item = ITEM, writer: str = "test/model") -> bytes:
        return reference_key(item, "fluency", "b" * 12, 3, writer)

    items = (
        Item("o", "ab"),
        Item("o", "a", "b"),
        Item("o", "", "ab"),
        Item("o", "\ud800"),
    )
    assert len({KEY, key(writer="test/other"), *map(key, items)}) == 6
    assert key(Item("another", "s", "c", "r", group="1")) == KEY == key()


def test_rows_of_one_document_write_once(store: ReferenceStore) -> None:
    write = Writer()

    async def rows() -> list[Any]:
        return await asyncio.gather(*(store.get_or_write(KEY, write) for _ in range(5)))

    got = engine.run(rows())
    assert [references for references, _ in got] == [SET] * 5
    assert sorted(usage.calls for _, usage in got) == [0, 0, 0, 0, 3]
    assert write.calls == 1


def test_of_two_processes_the_first_that_kept_its_references_counts(
    store: ReferenceStore,
) -> None:
    other, theirs = (
        ReferenceStore(store.path),
        ReferenceSet(3, {1: "Theirs.", 2: "And.", 3: "More."}, {}),
    )

    async def write() -> tuple[ReferenceSet, Usage]:
        other.put(KEY, theirs)  # while ours are being written
        return SET, Usage(calls=3)

    assert engine.run(store.get_or_write(KEY, write)) == (theirs, Usage(calls=3))
    assert store.get(KEY) == theirs


def test_the_environment_names_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JUDGESMITH_REFERENCES", str(tmp_path / "x.sqlite"))
    assert ReferenceStore.default_path() == tmp_path / "x.sqlite"
    assert reference_store.reference_store() is reference_store.reference_store()


def test_damage_costs_the_entry(store: ReferenceStore) -> None:
    store.put(KEY, SET)
    for value in DAMAGED:
        with sqlite3.connect(store.path) as db:
            db.execute("UPDATE texts SET value = ?", (value,))
        assert store.get(KEY) is None
    write = Writer()
    assert engine.run(store.get_or_write(KEY, write))[0] == SET
    assert write.calls == 1


def test_a_row_that_waits_writes_where_the_first_was_cancelled(
    store: ReferenceStore,
) -> None:
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
