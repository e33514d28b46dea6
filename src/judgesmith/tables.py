"""Tables as values, and the one place where texts of unknown origin are escaped for what shows them.

A `Table` has columns (words, or numbers with a format), rows and sections. A cell is a text, a number, or a `Cell`: a
number with its interval, bold where it is the best of its column, with a mark of significance, and with what only a
page shows of it (a colour, a bar, a link). `show` prints a table on a terminal; `html`, `notebook` and `markdown` write
it, and `frame` gives it to pandas. No text of a cell, title or note can become markup, formula or control sequence in
any of them.
"""

from __future__ import annotations

import html as _html
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console, Group, RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text

# Texts ---------------------------------------------------------------------------------------------------------------

#: Control characters, lone surrogates, and what turns the direction of a line.
_ACTS = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069"
#: What else a terminal obeys or does not show. The joiners U+200C and U+200D stay: Persian, Hindi and emoji need them.
_HIDDEN = (
    r"\r\xad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f"
)
_IN_A_PAGE = re.compile(f"[{_ACTS}]")
ON_A_TERMINAL = re.compile(f"[{_ACTS}{_HIDDEN}]")


def counted(number: int, noun: str) -> str:
    """Return `1 row`, `2 rows`, `0 rows`: a number with its noun, which takes an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def clean(words: str) -> str:
    """Return a text for a page or a figure, without characters that do something: they become U+FFFD."""
    return _IN_A_PAGE.sub("\ufffd", words)


def shown(words: str) -> str:
    """Return a text for a terminal, with harmful characters replaced by U+FFFD.

    Of control and format characters only line breaks, tabs and joiners stay.
    """
    return ON_A_TERMINAL.sub("\ufffd", words.replace("\r\n", "\n"))


def one_line(words: str) -> str:
    """Return a text for a line of a terminal."""
    return " ".join(shown(words).split())


def shortened(text: str, most: int = 60) -> str:
    """Return a text on one line, of at most `most` characters."""
    text = " ".join(clean(text).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def escaped(value: Any) -> str:
    """Return a text for HTML, also inside a quoted attribute."""
    return _html.escape(clean(str(value)))


def md(text: str) -> str:
    """Return a text for a line of markdown: no markup, no link, no mention, no reference to an issue."""
    acts = r"^[-+]|[\\`*_{}\[\]()<>#!|~&@]|:(?=\S)"
    return re.sub(acts, lambda match: f"&#{ord(match[0])};", one_line(text))


# Numbers -------------------------------------------------------------------------------------------------------------


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with a fixed count of decimals, a dash where there is none."""
    return formatted(value, f".{digits}f")


def plain(value: float) -> str:
    """Return a score as people write it: at most three decimals, without zeros at its end."""
    if math.isnan(value):
        return "–"
    return f"{round(value, 3):g}" if abs(value) < 1e6 else f"{value:.4g}"


def interval(low: float, high: float, digits: int = 2) -> str:
    """Return `[0.41, 0.52]`; "" if there is none."""
    return "" if math.isnan(low) else f"[{number(low, digits)}, {number(high, digits)}]"


def with_interval(value: float, low: float, high: float, digits: int = 2) -> str:
    """Return `0.47 [0.41, 0.52]`; without the brackets if there is no interval."""
    return f"{number(value, digits)} {interval(low, high, digits)}".rstrip()


def p_value(value: float) -> str:
    """Return a p-value, a dash where there is none."""
    return "< .001" if value < 0.001 else number(value)


def p_in_words(value: float) -> str:
    """Return a p-value for a sentence: `p = 0.025`, `p < .001`.

    >>> p_in_words(0.0004)
    'p < .001'
    """
    return f"p {p_value(value)}" if value < 0.001 else f"p = {p_value(value)}"


def percent(value: float) -> str:
    """Return a share in [0, 1] as a percentage, a dash where there is none."""
    return formatted(value, ".0%")


def formatted(value: Any, form: str) -> str:
    """Return a value of a cell by the format of its column; "p" is a p-value. Texts stay as they are."""
    if isinstance(value, str):
        return value
    if value is None or value != value:
        return "–"
    return p_value(value) if form == "p" else f"{value:{form}}"


# Tables --------------------------------------------------------------------------------------------------------------

#: Cells of words are not folded to fewer characters than this on a terminal.
FOLDED = 24


class Column(NamedTuple):
    """A column. form: the format of its numbers, "" for words. limits: the format of intervals, by default `form`."""

    title: str
    form: str = ""
    limits: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A value with what is shown of it."""

    value: Any
    """A text or a number; NaN or None for an undefined one."""
    low: float | None = None
    high: float | None = None
    """The interval, None or NaN where there is none."""
    best: bool = False
    mark: str = ""
    """Behind the value, explained in a note."""
    warn: bool = False
    note: str = ""
    """In a page: below the value, in small letters."""
    title: str = ""
    """In a page: shown where the mouse is."""
    href: str = ""
    """In a page: a link, a trusted address."""
    colour: int = 0
    """In a page: the number of a series, from 1, whose colour stands before the text."""
    bar: float | None = None
    """In a page: the length of a bar beside the value, in percent."""

    def text(self, column: Column) -> str:
        """Return the value in its column's form, with its mark."""
        return formatted(self.value, column.form) + self.mark

    def limits(self, column: Column) -> str:
        """Return the interval in its column's form; "" without one."""
        if self.low is None or math.isnan(self.low):
            return ""
        form = column.limits or column.form.lstrip("+")
        return f"[{formatted(self.low, form)}, {formatted(self.high, form)}]"


class Row(NamedTuple):
    """A row of a table.

    kind: "" for an ordinary one; "human" and "alarm" stand out; "section" is a title above rows, which may be empty.
    """

    cells: tuple[Cell, ...]
    kind: str = ""


class Size(NamedTuple):
    """The characters of a column on a terminal, by how far it is folded."""

    whole: int
    """With nothing folded."""
    cells: int
    """With the title folded; words too, if it holds words."""
    least: int
    """With intervals below their values, too."""
    words: bool = False


def fitted(sizes: Sequence[Size], width: int) -> list[int] | None:
    """Return the width of each column of a table; None if it needs more than `width`, two for each gap.

    Numbers are folded in all columns or in none.

    >>> number, words = Size(22, 18, 12), Size(40, 24, 24, words=True)
    >>> fitted([words, number], 66)
    [40, 22]
    >>> fitted([words, number], 48)
    [26, 18]
    >>> fitted([words, number], 40)
    [24, 12]
    >>> fitted([words, number], 39)
    """
    gaps = 2 * len(sizes)
    if sum(size.least for size in sizes) + gaps > width:
        return None
    widths = [size.cells for size in sizes]
    beside = sum(widths) + gaps <= width
    if not beside:
        widths = [size.least for size in sizes]
    for words in (True, False) if beside else (True,):
        lacks = [
            size.whole - own if size.words == words else 0
            for size, own in zip(sizes, widths, strict=True)
        ]
        lacking = sum(lacks)
        given = min(width - gaps - sum(widths), lacking)
        for k, lack in enumerate(lacks if lacking else ()):
            widths[k] += lack * given // lacking
    return widths


class Table:
    """See the module. columns: a plain text is a column of words. kind: its class in a page."""

    def __init__(
        self,
        columns: Iterable[Column | str],
        title: str = "",
        *,
        header: bool = True,
        kind: str = "",
    ) -> None:
        self.columns = [Column(one) if isinstance(one, str) else one for one in columns]
        self.title = title
        self.header = header
        self.kind = kind
        self.rows: list[Row] = []

    def add(self, *values: Any, kind: str = "") -> None:
        """Add a row; cells that are missing at its end stay empty."""
        cells = tuple(
            value if isinstance(value, Cell) else Cell(value) for value in values
        )
        self.rows.append(
            Row((*cells, *[Cell("")] * (len(self.columns) - len(cells))), kind)
        )

    def section(self, title: str = "") -> None:
        """Start a section: rows from here on belong together."""
        self.rows.append(Row((Cell(title),), "section"))

    def __len__(self) -> int:
        return sum(row.kind != "section" for row in self.rows)

    # -- terminal

    def show(self, console: Console) -> None:
        """Print the table; one that is too wide is a list with a block for each row.

        Words and numbers are never broken. Cells are folded between words, or between value and interval.
        """
        from rich.text import Text

        sizes = list(map(self._size, range(len(self.columns))))
        widths = fitted(sizes, console.width)
        if self.title:
            # Not the title of rich, which is no wider than its table.
            console.print(Text(one_line(self.title), style="bold"))
        console.print(self._list() if widths is None else self._rich(sizes, widths))

    def _size(self, place: int) -> Size:
        from rich.cells import cell_len

        column = self.columns[place]
        cells = [row.cells[place] for row in self.rows if row.kind != "section"]
        values = [one_line(cell.text(column)) for cell in cells]
        limits = [cell.limits(column) for cell in cells]
        flat = [self._cell(cell, column).plain for cell in cells]
        title = [one_line(column.title)] if self.header else []

        def most(*texts: str) -> int:
            return max(map(cell_len, [*texts, " "]))

        whole = most(*flat, *title)
        least = most(*limits, *chain(*map(str.split, [*values, *title])))
        if column.form:
            return Size(whole, most(*flat, *chain(*map(str.split, title))), least)
        folded = max(least, min(whole, FOLDED))
        return Size(whole, folded, folded, words=True)

    def _list(self) -> Group:
        """Return each row as a block: its first cell, then its other cells, each with its column's title."""
        from rich.console import Group
        from rich.padding import Padding
        from rich.text import Text

        lines: list[RenderableType] = []
        for row in self.rows:
            if row.kind == "section":
                words = one_line(str(row.cells[0].value))
                lines += ["", Text(words, style="dim")] if words else [""]
                continue
            for k, (cell, column) in enumerate(
                zip(row.cells, self.columns, strict=True)
            ):
                line = self._cell(cell, column)
                if not line:
                    continue
                if k and self.header and column.title:
                    line = Text.assemble(f"{one_line(column.title)}: ", line)
                line.stylize(self._style(row))
                lines.append(Padding(line, (0, 0, 0, 2 if k else 0), expand=False))
        return Group(*lines, "")

    def _rich(self, sizes: Sequence[Size], widths: Sequence[int]) -> RichTable:
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            box=box.SIMPLE_HEAD if self.header else None,
            show_header=self.header,
            padding=(0, 1),
            collapse_padding=self.header,
            pad_edge=False,
        )
        for column, width in zip(self.columns, widths, strict=True):
            table.add_column(
                Text(one_line(column.title)),
                justify="right" if column.form else "left",
                overflow="fold",
                min_width=width,
                max_width=width,
            )
        folded = [width < size.cells for width, size in zip(widths, sizes, strict=True)]
        for row in self.rows:
            if row.kind in ("section", "human"):
                table.add_section()
            if row.kind != "section":
                cells = map(self._cell, row.cells, self.columns, folded)
                table.add_row(*cells, style=self._style(row))
            elif words := one_line(str(row.cells[0].value)):
                table.add_row(Text(words, style="dim"))
        return table

    @staticmethod
    def _style(row: Row) -> str:
        return "red" if row.kind == "alarm" else ""

    @staticmethod
    def _cell(cell: Cell, column: Column, folded: bool = False) -> Text:
        """Return a cell. folded: its interval stands on a line of its own."""
        from rich.text import Text

        style = "red" if cell.warn else ""
        text = Text(one_line(cell.text(column)), style="bold" if cell.best else style)
        if limits := cell.limits(column):
            text.append("\n" if folded else " ")
            text.append(limits, style="not bold")
        return text

    # -- files

    def html(self, labelled: str = "") -> str:
        """Return the table for a page, as a region that scrolls by itself.

        labelled: the id of its title; by default its own title is the label.
        """
        if labelled:
            name = f'aria-labelledby="{escaped(labelled)}"'
        else:
            name = f'aria-label="{escaped(self.title)}, table"'
        head = "".join(
            f'<th scope="col"{_class("n" if column.form else "")} dir="auto">{escaped(column.title or "note")}</th>'
            for column in self.columns
        )
        return (
            f'<div class="scroll wide" tabindex="0" role="region" {name}><table{_class(self.kind)}>'
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(map(self._html_row, self.rows))}</tbody></table></div>"
        )

    def _html_row(self, row: Row) -> str:
        if row.kind == "section":
            words = escaped(row.cells[0].value)
            span = len(self.columns)
            head = f'<tr class="level"><th scope="rowgroup" colspan="{span}" dir="auto">{words}</th></tr>'
            return f"</tbody><tbody>{head if words else ''}"
        name, *others = zip(row.cells, self.columns, strict=True)
        head = f'<th scope="row" dir="auto">{_html_cell(*name)}</th>'
        cells = [head]
        for cell, column in others:
            classes = {
                "n": column.form,
                "best": cell.best,
                "warn": cell.warn,
                "meter": cell.bar is not None,
            }
            title = f' title="{escaped(cell.title)}"' if cell.title else ""
            kind = _class(" ".join(filter(classes.get, classes)))
            cells.append(f'<td{kind}{title} dir="auto">{_html_cell(cell, column)}</td>')
        return f"<tr{_class(row.kind)}>{''.join(cells)}</tr>\n"

    def notebook(self) -> str:
        """Return HTML that needs no stylesheet, for `_repr_html_`."""
        title = head = body = ""
        if self.title:
            title = f'<caption style="text-align:left">{escaped(self.title)}</caption>'
        if self.header:
            titles = "".join(f"<th>{escaped(one.title)}</th>" for one in self.columns)
            head = f"<thead><tr>{titles}</tr></thead>"
        for row in self.rows:
            cells = "".join(
                f'<td style="text-align:left">{escaped(words)}</td>'
                for words in self._texts(row)
            )
            body += f"<tr>{cells}</tr>"
        whole = f"<table>{title}{head}<tbody>{body}</tbody></table>"
        return f'<div style="overflow-x:auto" tabindex="0">{whole}</div>'  # scrolls by itself

    def _texts(self, row: Row) -> list[str]:
        """Return the cells of a row as texts; a section has one."""
        both = zip(row.cells, self.columns, strict=False)
        return [
            clean(f"{cell.text(of)} {cell.limits(of)}".strip()) for cell, of in both
        ]

    def frame(self) -> pd.DataFrame:
        """Return its cells as texts, without sections, for the formats that pandas writes."""
        import pandas as pd

        rows = [self._texts(row) for row in self.rows if row.kind != "section"]
        return pd.DataFrame(
            rows, columns=[clean(column.title) for column in self.columns]
        )

    def markdown(self) -> str:
        """Return a table of GitHub's markdown."""
        lines = [
            [md(column.title) for column in self.columns],
            ["--:" if column.form else "---" for column in self.columns],
        ]
        for row in self.rows:
            if row.kind != "section":
                lines.append(list(map(_markdown_cell, row.cells, self.columns)))
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def facts(rows: Iterable[tuple[str, Any]]) -> str:
    """Return names beside values as HTML, for `_repr_html_`."""
    table = Table(("name", "value"), header=False)
    for name, value in rows:
        table.add(name, str(value))
    return table.notebook()


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""


def _html_cell(cell: Cell, column: Column) -> str:
    words = escaped(cell.text(column))
    words = f"<b>{words}</b>" if cell.best else words
    words = f'<a href="{escaped(cell.href)}">{words}</a>' if cell.href else words
    if cell.colour:
        words = f'<span class="key" style="background: var(--judge{cell.colour})"></span><bdi>{words}</bdi>'
        words = f'<span class="keyed">{words}</span>'
    for more in (cell.limits(column), cell.note):
        words += f'<span class="ci">{escaped(more)}</span>' if more else ""
    if cell.bar is not None:
        words += f'<span class="track" aria-hidden="true"><i style="width:{cell.bar}%"></i></span>'
    return words


def _markdown_cell(cell: Cell, column: Column) -> str:
    if isinstance(cell.value, str):
        words = md(cell.value)
    else:
        words = formatted(cell.value, column.form)
    words += md(cell.mark)
    words = f"**{words}**" if cell.best else words
    limits = cell.limits(
        column
    )  # numbers in brackets, which no markdown takes for a link without what follows
    return f"{words} {limits}" if limits else words
