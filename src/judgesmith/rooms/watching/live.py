"""`judgesmith browse --watch`: the folder as a live page in this machine's browser.

It follows the files, shows the rows behind each number, and two judges side by side. Only files that `folder.browse`
found are read.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from markupsafe import Markup

from judgesmith.errors import JudgesmithError, OptionError
from judgesmith.optimizers.seen import Seen
from judgesmith.pages import Section, stylesheet
from judgesmith.pages import render as render_page
from judgesmith.reports.rows import Scored
from judgesmith.reports.spans import cards
from judgesmith.rooms.watching.browsing import look, render
from judgesmith.rooms.watching.folder import (
    MOST_FILES,
    Browsed,
    SavedJudge,
    browse,
    files_in,
    scored_rows,
)
from judgesmith.rooms.watching.judges import compare_judges, shown
from judgesmith.running import private
from judgesmith.running.opening import quiet
from judgesmith.tables import Cell, Column, Table, shortened

#: Rows of one look.
PAGE = 25
MOST = 200
FILES = {
    "/": ("live.html", "text/html"),
    "/page.js": ("live.js", "text/javascript"),
    "/page.css": ("", "text/css"),
}
#: Figures are drawn with style attributes; their texts are escaped, as all texts of the page are, and no script runs.
POLICY = {
    "Content-Security-Policy": private.HEADERS["Content-Security-Policy"].replace(
        "style-src 'self'", "style-src 'self' 'unsafe-inline'"
    )
}
ORDERS = {
    "": "of the file",
    "low": "lowest score first",
    "high": "highest score first",
    "apart": "furthest from people",
}
#: Rows that a look keeps: what it is called, and whether each row is of it.
FILTERS: dict[str, tuple[str, Callable[[Scored], Iterable[Any]]]] = {
    "": ("all", lambda data: [True] * len(data.rows)),
    "failed": (
        "without score",
        lambda data: [row.verdict.failure for row in data.rows],
    ),
    "people": (
        "with human ratings",
        lambda data: ~np.isnan(data.sides[0].human + data.sides[0].score),
    ),
    "suspicious": (
        "suspicious",
        lambda data: [row.verdict.suspicious for row in data.rows],
    ),
    "partly": ("read in part", lambda data: [row.verdict.partly for row in data.rows]),
    "fail": (
        "the judge fails it",
        lambda data: [row.verdict.passed is False for row in data.rows],
    ),
    "pass": (
        "the judge passes it",
        lambda data: [row.verdict.passed for row in data.rows],
    ),
    "differ": (
        "decided differently",
        lambda data: [] if (side := data.passed()) is None else side.gap == 1,
    ),
}
Entry = TypeVar("Entry", bound=Any)


class Live:
    """The live page of one folder.

    Raises:
        OptionError: If the path is not a folder, or a file is not in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mark = ""
        self.contents = self._look()

    def mark(self) -> str:
        """Return a text that changes when a file in the folder does."""
        stamps = hashlib.sha256()
        for path in itertools.islice(files_in(self.folder), MOST_FILES):
            with contextlib.suppress(OSError):  # gone meanwhile
                about = path.stat()
                stamps.update(
                    f"{path}\0{about.st_mtime_ns}\0{about.st_size}\0".encode(
                        "utf-8", "surrogateescape"
                    )
                )
        return stamps.hexdigest()[:32]

    def _look(self) -> Browsed:
        if (mark := self.mark()) != self._mark:
            with quiet():
                self.contents = browse(self.folder)
            self._mark = mark
        return self.contents

    def page(self, parameters: Mapping[str, str]) -> str:
        """Return the page of an address."""
        looks = {
            "": lambda _: render(self._look()),
            "rows": self._rows,
            "labels": self._labels,
            "judges": self._judges,
        }
        self._look()
        if parameters.get("at", "") not in looks:
            raise OptionError(
                f"there is no page {parameters['at']!r}; go back to all judges and runs"
            )
        return looks[parameters.get("at", "")](parameters)

    def _of(self, several: list[Entry], path: str | None) -> Entry:
        entry = next((one for one in several if one.path == path), None)
        if entry is None:
            raise OptionError(
                f"{path!r} is not in the folder (any more); go back to all judges and runs"
            )
        return entry

    def _rows(self, parameters: Mapping[str, str]) -> str:
        """Return rows of a scored file: one by its id, or a page of them by order and filter."""
        path = self._of(self.contents.scored, parameters.get("file")).path
        data = scored_rows(self.folder / path)
        only = parameters.get("only", "")
        order = parameters.get("order", "")
        side = data.sides[0]
        matching = {
            name: [*map(bool, keep(data))] for name, (_, keep) in FILTERS.items()
        }
        keys = {
            "low": side.score,
            "high": -side.score,
            "apart": -np.nan_to_num(side.gap, nan=-1.0),
        }
        if order in keys:
            places = np.argsort(keys[order], kind="stable").tolist()
        else:
            places = list(range(len(data.rows)))
        here = matching.get(only) or [False] * len(places)
        identity = parameters.get("id")
        begin = parameters.get("start", "")[:9]
        places = [
            i for i in places if here[i] and identity in (None, data.rows[i].row.id)
        ]
        start = min(int(begin) if begin.isdecimal() else 0, len(places))
        markup, style = cards(data, places[start : start + PAGE])
        chosen = {
            name: parameters[name]
            for name in ("file", "order", "only")
            if parameters.get(name)
        }
        filters = {
            name: f"{FILTERS[name][0]} ({sum(of)})"
            for name, of in matching.items()
            if any(of) or name in ("", only)
        }
        steps = {
            str(start + step): name
            for step, name in ((-PAGE, "Previous"), (PAGE, "Next"))
            if 0 <= start + step < len(places)
        }
        if markup:
            ends = f"{start + 1} to {start + len(markup)} of {len(places)}"
        else:
            ends = "none"
        parts = [
            _choices(
                "Rows",
                filters,
                only,
                lambda name: look("rows", **chosen | {"only": name}),
            ),
            _choices(
                "Order",
                ORDERS,
                order,
                lambda name: look("rows", **chosen | {"order": name}),
            ),
            Markup("").join(markup),
            _choices(
                ends, steps, "", lambda name: look("rows", **chosen | {"start": name})
            ),
        ]
        return self._page(path, [Section("Rows", parts)], style=style, notes=data.notes)

    def _labels(self, parameters: Mapping[str, str]) -> str:
        """Return labelled rows; with a judge, whether it was compiled from them."""
        one = self._of(self.contents.labels, parameters.get("file"))
        judge = None
        seen = Seen()
        crossed = False
        if parameters.get("judge"):
            judge = self._of(self.contents.judges, parameters["judge"])
            seen = Seen(judge.data.get("provenance") or {})
            crossed = judge.value("provenance", "heldout", "cross_validated") is True
        columns = ["row", "text", *one.people]
        if seen:
            columns.append("in the compiling")
        table = Table(columns, f"Labels of {one.path}")
        rows = [row for row in one.rows if row[3] or parameters.get("only") != "rated"]
        for identity, source, text, ratings in rows[:MOST]:
            cells = [identity, shortened(text, 300)]
            cells += [shown(ratings.get(name), 60) for name in one.people]
            if seen:
                learnt = seen.knows(source, text)
                cells.append("learnt from" if learnt else "held out")
            table.add(*cells)
        parts: list[Any] = []
        if crossed:
            parts.append(
                "The agreement was measured on these rows, each judged by a judge compiled without it."
            )
        if len(rows) > MOST:
            parts.append(f"The first {MOST} of {len(rows)} rows.")
        return self._page(one.path, [Section("Labels", [*parts, table])])

    def _judges(self, parameters: Mapping[str, str]) -> str:
        """Return two judges side by side."""
        a, b = (self._of(self.contents.judges, parameters.get(name)) for name in "ab")
        others = {one.path: one.path for one in self.contents.judges}
        choose = [
            _choices(
                "Left", others, a.path, lambda path: look("judges", a=path, b=b.path)
            ),
            _choices(
                "Right", others, b.path, lambda path: look("judges", a=a.path, b=path)
            ),
        ]
        facts = Table(
            ["what", Column(a.path, ".2f"), Column(b.path, ".2f")],
            "What each says of itself",
        )
        for name, which in (
            ("agreement with people, held out", "heldout"),
            ("zero-shot", "zero_shot"),
        ):
            facts.add(name, *(Cell(*one.agreement(which)) for one in (a, b)))
        for name, path in (
            ("measured by", "objective"),
            ("labels", "labels.rows"),
            ("calls", "cost.calls"),
        ):
            facts.add(
                name,
                *(
                    shown(one.value("provenance", *path.split(".")), 60)
                    for one in (a, b)
                ),
            )
        diff = Table(["what", a.path, b.path], "What differs")
        for name, before, after in compare_judges(a.read, b.read).changes:
            diff.add(name, shown(before, 2000), shown(after, 2000))
        same = "Both give the same verdicts." if not len(diff) else ""
        sections = [
            Section("Side by side", [*choose, facts, same, diff]),
            Section("Rows", list(self._both(a, b))),
        ]
        return self._page(f"{a.path} and {b.path}", sections)

    def _both(self, a: SavedJudge, b: SavedJudge) -> Iterator[Any]:
        """Yield the rows that both have judged, by id, those that they judge most differently first."""
        if a.mark == b.mark:
            yield ""
            return
        one = self._verdicts(a)
        other = self._verdicts(b)
        ids = list(filter(other.__contains__, one))
        if not ids:
            yield "No row of a scored file in this folder was judged by both."
            return
        x, y, people = np.array(
            [(one[name][1], other[name][1], one[name][2]) for name in ids]
        ).T
        yield f"{len(ids)} rows by both; mean score {np.nanmean(x):.2f} and {np.nanmean(y):.2f}."
        numbers = (
            Column(name, ".2f") for name in ("people", a.path, b.path, "difference")
        )
        table = Table(["row", *numbers])
        gaps = np.nan_to_num(np.abs(y - x), nan=-1.0)
        for i in np.argsort(-gaps, kind="stable")[:MOST].tolist():
            name = ids[i]
            table.add(
                name,
                people[i],
                Cell(x[i], href=look("rows", file=one[name][0], id=name)),
                Cell(y[i], href=look("rows", file=other[name][0], id=name)),
                Cell(y[i] - x[i]),
            )
        yield table

    def _verdicts(self, judge: SavedJudge) -> dict[str, tuple[str, float, float]]:
        """Return the file, the judge's score and people's, by id."""
        verdicts: dict[str, tuple[str, float, float]] = {}
        for one in self.contents.scored:
            if judge.mark in one.judges:
                data = scored_rows(self.folder / one.path)
                for row, score, human in zip(
                    data.rows, data.sides[0].score, data.sides[0].human, strict=True
                ):
                    if row.judge == judge.mark:
                        verdicts.setdefault(
                            row.row.id, (one.path, float(score), float(human))
                        )
        return verdicts

    def _page(self, title: str, sections: list[Section], **options: Any) -> str:
        back = Markup('<p><a href="?">All judges and runs</a></p>')
        sections[0] = Section(sections[0].title, [back, *sections[0].parts])
        return render_page(title, sections, **options)


def _choices(
    name: str, options: Mapping[str, str], chosen: str, to: Callable[[str], str]
) -> Markup:
    """Return links to the same page with another choice."""
    links = []
    for key, words in options.items():
        mark = Markup(' aria-current="true"') if key == chosen else ""
        links.append(Markup('<a href="{}"{}>{}</a>').format(to(key), mark, words))
    return Markup('<p class="choices"><b>{}</b> {}</p>').format(
        name, Markup(" · ").join(links)
    )


def application(live: Live, token: str, port: int) -> private.App:
    """Return the ASGI application at a port of this machine."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    def file(name: str, kind: str) -> Callable[[Request], Response]:
        if name:
            text = files(__package__).joinpath(name).read_text(encoding="utf-8")
        else:
            text = stylesheet()
        return lambda _: Response(text, media_type=kind)

    def view(request: Request) -> Response:
        mark = f'"{live.mark()}"'
        if request.headers.get("if-none-match") == mark:
            return Response(status_code=304)
        try:
            return Response(
                live.page(request.query_params),
                media_type="text/html",
                headers={"ETag": mark},
            )
        except (JudgesmithError, OSError) as error:
            return JSONResponse({"error": " ".join(str(error).split())[:500]}, 404)

    routes = [
        *(Route(path, file(*of)) for path, of in FILES.items()),
        Route("/view", view),
    ]
    return private.Gate(Starlette(routes=routes), token, port, headers=POLICY)


def serve(folder: Path, port: int, started: Callable[[str], None]) -> None:
    """Serve the live page until Ctrl-C.

    Raises:
        OptionError: If the port is taken.
        MissingExtraError: If the server's packages are not installed.
    """
    private.require_server()
    live = Live(folder)
    token = secrets.token_urlsafe(24)
    listening = private.listening(port)
    private.serve(
        application(live, token, listening.getsockname()[1]), listening, token, started
    )
