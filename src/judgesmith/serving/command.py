"""`judgesmith serve`: saved judges behind HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from ..cli.commands import Command, Reach, argument, flag
from ..errors import OptionError
from ..extras import from_extra


class Serve(Command, Reach):
    """Answer POST /v1/score {"source", "output"} with the verdict of a saved judge.

    A row may use the names that its texts had in the judge's labels, such as those of `compile --columns`.
    POST /v1/score/many streams a line a row; GET /v1/judges, /healthz, /readyz, /metrics (Prometheus), /openapi.json.
    Requests need `Authorization: Bearer KEY`, with a key of JUDGESMITH_API_KEY (or several, with commas between), or
    else one that is made and printed at each start; a server for other machines needs the former. /healthz and /readyz
    need none. Bodies are sent as `Content-Type: application/json`. There is no TLS: put a proxy before it. SIGTERM
    finishes what was accepted.
    """

    panel: ClassVar[str] = "Operate"

    judges: list[str] = argument(..., "Saved judges: FILE or NAME=FILE.", "JUDGE...")
    host: str = flag("127.0.0.1", "Address to listen at.")
    known_as: list[str] = flag(
        [],
        "Name under which clients reach it, as behind a proxy (repeat); others get 421.",
    )
    port: int = flag(8000, "0: any free one, which is printed.", ge=0, le=65535)
    queue: int = flag(
        4096, "Rows accepted and not answered yet, at most; then 429.", ge=1
    )
    row_timeout: float = flag(
        120.0, "Seconds from a row's acceptance to its verdict; then 504.", gt=0
    )
    grace: float = flag(30.0, "Seconds that a stop gives to what was accepted.", ge=0)
    workers: int = flag(
        1,
        "Processes behind the port; queue, rate and concurrency are of all of them together.",
        ge=1,
    )
    quiet_log: bool = flag(
        False, "No line of JSON on stderr for each request.", "--no-log"
    )

    def run(self) -> None:
        """Open the judges and serve them."""
        from ..running.console import err
        from ..running.opening import open_judge, quiet

        from_extra(
            "serve", "serving", "fastapi", "prometheus_client", "psutil", "uvicorn"
        )
        from .run import KEYS, admitted, bound, hosts, keys, serve, use_fast_loop
        from .service import Bounds, Service

        given, files, where = keys(), named(self.judges), self.connection()
        listening = bound(self.host, self.port)
        known = hosts(listening, tuple(self.known_as))
        asked = admitted(given, known)
        shown = f"[{self.host}]" if ":" in self.host else self.host
        address = f"http://{shown}:{listening.getsockname()[1]}"

        def started() -> None:
            key = (
                ""
                if given
                else f" (Authorization: Bearer {asked[0]}; set {KEYS} for a key that stays)"
            )
            err.print(
                f"serving {', '.join(files)} at {address}{key}",
                markup=False,
                soft_wrap=True,
            )

        bounds = Bounds(self.queue, self.row_timeout, self.grace)
        if self.workers > 1:
            from .workers import Worker, serve_many

            worker = Worker(
                files, self.lm, where, bounds, asked, known, not self.quiet_log
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
                keys=asked,
                hosts=known,
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
