"""`judgesmith serve`: saved judges behind HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from judgesmith.cli.commands import Command, Reach, argument, flag
from judgesmith.errors import OptionError


class Serve(Command, Reach):
    """Serve saved judges over HTTP.

    POST /v1/score {"source", "output"} answers with a verdict. POST /v1/score/many streams one line per row. Other
    routes: GET /v1/judges, /healthz, /readyz, /metrics (Prometheus), /openapi.json. Bodies are `Content-Type:
    application/json`. Rows may use the column names of the judge's labels, such as those of `compile --columns`.

    Requests need the header `Authorization: Bearer KEY`, except /healthz and /readyz. Set keys in
    JUDGESMITH_API_KEY, separated by commas, each with a name for the log if you like (NAME=KEY). A server for other
    machines requires a key. Without one, each start prints a new key.

    There is no TLS: put a proxy in front. SIGTERM finishes accepted rows, then stops the server.
    """

    example: ClassVar[str] = "judgesmith serve judge.json --port 8000"
    everyday: ClassVar[tuple[str, ...]] = (
        "host",
        "port",
        "known_as",
        "lm",
        "api_base",
        "workers",
        "queue",
        "row_timeout",
        "grace",
        "concurrency",
        "rpm",
        "quiet_log",
    )

    judges: list[str] = argument(
        ...,
        "Saved judges: FILE, or NAME=FILE to choose the name in requests.",
        "JUDGE...",
    )
    host: str = flag("127.0.0.1", "Network address to listen on.")
    known_as: list[str] = flag(
        [],
        "Host name that clients use, e.g. behind a proxy. Requests for other hosts get status 421. Repeatable.",
    )
    port: int = flag(
        8000,
        "Port to listen on. 0: any free port, printed at the start.",
        ge=0,
        le=65535,
    )
    queue: int = flag(
        4096,
        "Maximum number of rows waiting for a verdict. Further requests get status 429.",
        ge=1,
    )
    key_rows: float | None = flag(
        None,
        "Maximum number of rows that one key may send in a minute. Further requests get status 429. Default: no limit.",
        gt=0,
    )
    row_timeout: float = flag(
        120.0,
        "Maximum time from a row's acceptance to its verdict, in seconds. Later rows get status 504.",
        gt=0,
    )
    grace: float = flag(
        30.0, "Time to finish accepted rows after SIGTERM, in seconds.", ge=0
    )
    workers: int = flag(
        1,
        "Number of server processes. They share --queue, --rpm and --concurrency.",
        ge=1,
    )
    quiet_log: bool = flag(
        False, "Do not log requests (one JSON line each, on stderr).", "--no-log"
    )

    def run(self) -> None:
        """Open the judges and serve them."""
        from judgesmith.rooms.serving.run import (
            KEYS,
            admitted,
            bound,
            hosts,
            keys,
            serve,
            use_fast_loop,
        )
        from judgesmith.rooms.serving.service import Bounds, Service
        from judgesmith.running.console import err
        from judgesmith.running.opening import open_judge, quiet

        set_keys = keys()
        files = named(self.judges)
        where = self.connection()
        listening = bound(self.host, self.port)
        served = hosts(listening, tuple(self.known_as))
        accepted = admitted(set_keys, served)
        shown = f"[{self.host}]" if ":" in self.host else self.host
        address = f"http://{shown}:{listening.getsockname()[1]}"

        def started() -> None:
            if set_keys:
                key = ""
            else:
                key = f" (Authorization: Bearer {accepted[0]}; set {KEYS} for a key that stays)"
            err.print(
                f"serving {', '.join(files)} at {address}{key}",
                markup=False,
                soft_wrap=True,
            )

        bounds = Bounds(
            self.queue, self.row_timeout, self.grace, key_rows=self.key_rows
        )
        if self.workers > 1:
            from judgesmith.rooms.serving.workers import Worker, serve_many

            worker = Worker(
                files, self.lm, where, bounds, accepted, served, not self.quiet_log
            )
            serve_many(worker, self.workers, listening, started)
            return
        use_fast_loop()
        with quiet():
            judges = {
                name: open_judge(path, self.lm, where) for name, path in files.items()
            }
            service = Service(judges, bounds)
            serve(
                service,
                listening,
                keys=accepted,
                hosts=served,
                log=not self.quiet_log,
                started=started,
            )


def named(judges: list[str]) -> dict[str, Path]:
    """Return the judges' files by the names that requests use.

    Raises:
        OptionError: If two have one name.
    """
    result: dict[str, Path] = {}
    for text in judges:
        name, equals, file = text.partition("=")
        path = Path(file if equals else text)
        name = name if equals else path.stem
        if not name or "@" in name or name in result:
            raise OptionError(
                f"{text!r}: each judge needs a name of its own without @; give NAME=FILE"
            )
        result[name] = path
    return result
