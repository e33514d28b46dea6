"""What stands in a page of HTML."""

import html.parser
import re

Attributes = dict[str, str | None]


class Page(html.parser.HTMLParser):
    """Parts of a page: tags with their attributes, scripts with theirs, text outside them, and tables.

    A table is rows of (tag, attributes, text).
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, Attributes]] = []
        self.scripts: list[tuple[Attributes, str]] = []
        self.tables: list[list[list[tuple[str, Attributes, str]]]] = []
        self.text, self._open = "", ""
        self.feed(text)

    @property
    def attributes(self) -> list[tuple[str, str, str | None]]:
        return [
            (tag, name, value)
            for tag, given in self.tags
            for name, value in given.items()
        ]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "script":
            self.scripts.append((self.tags[-1][1], data))
            return
        self.text += data
        if self._open in ("td", "th"):
            tag, attributes, text = self.tables[-1][-1][-1]
            self.tables[-1][-1][-1] = (tag, attributes, text + data)


def check_that_nothing_runs(page: Page) -> None:
    """No text became an element, a handler or an address."""
    assert "img" not in dict(page.tags)
    for _, name, value in page.attributes:
        assert not name.startswith("on")
        assert name not in ("href", "src", "xlink:href") or re.match(
            "#", value or "#"
        ), value
    assert "\u202e" not in page.text
    assert "\x1b" not in page.text
