"""Contract of every screen, which finds texts that address their judge."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from judgesmith.programs.prompting.suspicion import FLAGGED, screens
from judgesmith.rows import Item

PLAIN = Item(
    output="The ferry does not run on Sundays.",
    source="Sunday ferries are cancelled, as few people use them.",
)


class ScreenContract:
    """Subclass it in a test module, name the `part` and an `attack`, and pytest runs all of this over it."""

    part: ClassVar[type[Any]]
    attack: ClassVar[str]
    """A sentence that addresses its judge, which the screen finds."""

    def test_it_is_registered_and_says_what_it_is(self) -> None:
        assert screens.get(self.part.name) is self.part
        assert self.part.about

    def test_a_plain_row_stays_as_it_is(self) -> None:
        assert self.part().guarded(PLAIN, FLAGGED) == (PLAIN, None)

    def test_an_attack_is_found_and_its_sentence_alone_taken_out(self) -> None:
        item = Item(output=f"{PLAIN.output} {self.attack}", source=PLAIN.source)
        safe, found = self.part().guarded(item, FLAGGED)
        assert found is not None
        assert FLAGGED <= found.probability <= 1
        assert found.about
        assert self.attack not in safe.output
        assert PLAIN.output in safe.output
        assert safe.source == item.source

    def test_an_attack_alone_leaves_no_empty_text(self) -> None:
        item = Item(output=self.attack, source=PLAIN.source)
        safe, _ = self.part().guarded(item, FLAGGED)
        assert safe.output.strip()

    def test_the_loop_finds_the_same(self) -> None:
        for output in (PLAIN.output, f"{PLAIN.output} {self.attack}"):
            item = Item(output=output, source=PLAIN.source)
            screen = self.part()
            found = asyncio.run(screen.screened(item, FLAGGED))
            assert found == screen.guarded(item, FLAGGED)
