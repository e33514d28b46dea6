"""`judgesmith browse --watch`: the folder as a page of this machine's browser that follows the files, with the rows
behind each number and two judges side by side. Only files that `folder.browse` found are read.
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

from ..errors import JudgesmithError, OptionError
from ..optimizers.seen import Seen
from ..pages import Section, stylesheet
from ..pages import render as render_page
from ..reports.rows import Scored
from ..reports.spans import cards
from ..running import private
from ..running.opening import quiet
from ..tables import Cell, Column, Table, shortened
from .browsing import look, render
from .folder import MOST_FILES, Browsed, SavedJudge, browse, files_in, scored_rows
from .judges import compare_judges, shown

#: Rows of one look.
PAGE, MOST = 25, 200
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
    """The looks of one folder. Raises OptionError for a path that is not a folder, or for a file that is not in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._mark = folder, ""
        self.contents = self._look()

    def mark(self) -> str:
        """What changes when a file in the folder does."""
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

    def page(self, asked: Mapping[str, str]) -> str:
        """What an address asks for."""
        looks = {
            "": lambda _: render(self._look()),
            "rows": self._rows,
            "labels": self._labels,
            "judges": self._judges,
        }
        self._look()
        if asked.get("at", "") not in looks:
            raise OptionError(
                f"there is no look {asked['at']!r}; go back to all judges and runs"
            )
        return looks[asked.get("at", "")](asked)

    def _of(self, several: list[Entry], path: str | None) -> Entry:
        entry = next((one for one in several if one.path == path), None)
        if entry is None:
            raise OptionError(
                f"{path!r} is not in the folder, or not any more; go back to all judges and runs"
            )
        return entry

    def _rows(self, asked: Mapping[str, str]) -> str:
        """Rows of a scored file: one by its id, or a page of them by order and filter."""
        path = self._of(self.contents.scored, asked.get("file")).path
        data, only, order = (
            scored_rows(self.folder / path),
            asked.get("only", ""),
            asked.get("order", ""),
        )
        side, kept = (
            data.sides[0],
            {name: [*map(bool, keep(data))] for name, (_, keep) in FILTERS.items()},
        )
        keys = {
            "low": side.score,
            "high": -side.score,
            "apart": -np.nan_to_num(side.gap, nan=-1.0),
        }
        places = (
            np.argsort(keys[order], kind="stable").tolist()
            if order in keys
            else list(range(len(data.rows)))
        )
        here, identity, begin = (
            kept.get(only) or [False] * len(places),
            asked.get("id"),
            asked.get("start", "")[:9],
        )
        places = [
            i for i in places if here[i] and identity in (None, data.rows[i].row.id)
        ]
        start = min(int(begin) if begin.isdecimal() else 0, len(places))
        made, style = cards(data, places[start : start + PAGE])
        chosen = {
            name: asked[name] for name in ("file", "order", "only") if asked.get(name)
        }
        filters = {
            name: f"{FILTERS[name][0]} ({sum(of)})"
            for name, of in kept.items()
            if any(of) or name in ("", only)
        }
        steps = {
            str(start + step): name
            for step, name in ((-PAGE, "Previous"), (PAGE, "Next"))
            if 0 <= start + step < len(places)
        }
        ends = (
            f"{start + 1} to {start + len(made)} of {len(places)}" if made else "none"
        )
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
            Markup("").join(made),
            _choices(
                ends, steps, "", lambda name: look("rows", **chosen | {"start": name})
            ),
        ]
        return self._page(path, [Section("Rows", parts)], style=style, notes=data.notes)

    def _labels(self, asked: Mapping[str, str]) -> str:
        """Labelled rows; with a judge, whether it was compiled from them."""
        one = self._of(self.contents.labels, asked.get("file"))
        judge = (
            self._of(self.contents.judges, asked["judge"])
            if asked.get("judge")
            else None
        )
        seen = Seen(judge.data.get("provenance") or {}) if judge else Seen()
        made = Table(
            ["row", "text", *one.people, *(["in the compiling"] if seen else [])],
            f"Labels of {one.path}",
        )
        rows = [row for row in one.rows if row[3] or asked.get("only") != "rated"]
        for identity, source, text, said in rows[:MOST]:
            known = (
                ["learnt from" if seen.knows(source, text) else "held out"]
                if seen
                else []
            )
            made.add(
                identity,
                shortened(text, 300),
                *(shown(said.get(name), 60) for name in one.people),
                *known,
            )
        crossed = (
            judge is not None
            and judge.said("provenance", "heldout", "cross_validated") is True
        )
        about = (
            "The agreement was measured on these rows, each judged by a judge compiled without it."
            if crossed
            else ""
        )
        more = [
            about,
            *([f"The first {MOST} of {len(rows)} rows."] if len(rows) > MOST else []),
        ]
        return self._page(one.path, [Section("Labels", [*more, made])])

    def _judges(self, asked: Mapping[str, str]) -> str:
        """Two judges side by side."""
        a, b = (self._of(self.contents.judges, asked.get(name)) for name in "ab")
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
                    shown(one.said("provenance", *path.split(".")), 60)
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
        """The rows that both have judged, by id, those that they judge most differently first."""
        sides = [self._verdicts(a), self._verdicts(b)]
        ids = (
            [name for name in sides[0] if name in sides[1]] if a.mark != b.mark else []
        )
        if not ids:
            yield (
                "No row of a scored file in this folder was judged by both."
                if a.mark != b.mark
                else ""
            )
            return
        x, y, people = (
            np.array([v[k] for v in (sides[s][i] for i in ids)])
            for s, k in ((0, 1), (1, 1), (0, 2))
        )
        yield f"{len(ids)} rows by both; mean score {np.nanmean(x):.2f} and {np.nanmean(y):.2f}."
        numbers = (
            Column(name, ".2f") for name in ("people", a.path, b.path, "difference")
        )
        made = Table(["row", *numbers])
        for i in np.argsort(-np.nan_to_num(np.abs(y - x), nan=-1.0), kind="stable")[
            :MOST
        ].tolist():
            to = [look("rows", file=side[ids[i]][0], id=ids[i]) for side in sides]
            made.add(
                ids[i],
                people[i],
                Cell(x[i], href=to[0]),
                Cell(y[i], href=to[1]),
                Cell(y[i] - x[i]),
            )
        yield made

    def _verdicts(self, judge: SavedJudge) -> dict[str, tuple[str, float, float]]:
        """By id: the file, the score, and people's."""
        made: dict[str, tuple[str, float, float]] = {}
        for one in self.contents.scored:
            if judge.mark in one.judges:
                data = scored_rows(self.folder / one.path)
                for row, score, human in zip(
                    data.rows, data.sides[0].score, data.sides[0].human, strict=True
                ):
                    if row.judge == judge.mark:
                        made.setdefault(
                            row.row.id, (one.path, float(score), float(human))
                        )
        return made

    def _page(self, title: str, sections: list[Section], **how: Any) -> str:
        back = Markup('<p><a href="?">All judges and runs</a></p>')
        sections[0] = Section(sections[0].title, [back, *sections[0].parts])
        return render_page(title, sections, **how)


def _choices(
    name: str, options: Mapping[str, str], chosen: str, to: Callable[[str], str]
) -> Markup:
    """Links to the same look with something else chosen."""
    made = []
    for key, words in options.items():
        mark = Markup(' aria-current="true"') if key == chosen else ""
        made.append(Markup('<a href="{}"{}>{}</a>').format(to(key), mark, words))
    return Markup('<p class="choices"><b>{}</b> {}</p>').format(
        name, Markup(" · ").join(made)
    )


def application(live: Live, token: str, port: int) -> private.App:
    """The ASGI application at a port of this machine."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    def file(name: str, kind: str) -> Callable[[Request], Response]:
        text = (
            files(__package__).joinpath(name).read_text(encoding="utf-8")
            if name
            else stylesheet()
        )
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
    """Serve the live page until Ctrl-C. Raises OptionError, MissingExtraError."""
    private.require_server()
    live, token = Live(folder), secrets.token_urlsafe(24)
    made = private.listening(port)
    private.serve(application(live, token, made.getsockname()[1]), made, token, started)
