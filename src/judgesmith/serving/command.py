"""`judgesmith serve`: saved judges behind HTTP."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ..cli.options import LM, ApiBases, Concurrency, NoCache, Rpm, Timeout
from ..errors import MissingExtraError, OptionError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `serve` to the command line."""
    app.command(name="serve")(serve)


def serve(
    judges: Annotated[list[str], typer.Argument(metavar="JUDGE...", help="Saved judges: FILE or NAME=FILE.")],
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any free one, which is printed.", min=0, max=65535)] = 8000,
    workers: Annotated[
        int,
        typer.Option(help="Processes, about one a core; they share --queue, --concurrency and --rpm.", min=1),
    ] = 1,
    queue: Annotated[
        int,
        typer.Option(help="Rows accepted and not answered yet, at most; then 429.", min=1, rich_help_panel="Bounds"),
    ] = 4096,
    row_timeout: Annotated[
        float, typer.Option(help="Seconds from a row's acceptance to its verdict; then 504.", rich_help_panel="Bounds")
    ] = 120.0,
    max_body: Annotated[int, typer.Option(help="Bytes of a request.", min=1, rich_help_panel="Bounds")] = 8_388_608,
    max_rows: Annotated[int, typer.Option(help="Rows of a request.", min=1, rich_help_panel="Bounds")] = 4096,
    grace: Annotated[
        float, typer.Option(help="Seconds that a stop gives to what was accepted.", min=0, rich_help_panel="Bounds")
    ] = 30.0,
    jobs: Annotated[
        Path | None,
        typer.Option(help="Folder of batch jobs, which resume after a restart; without it they end with the server."),
    ] = None,
    max_jobs: Annotated[
        int, typer.Option(help="Jobs kept at once, done ones too; then 429.", min=1, rich_help_panel="Bounds")
    ] = 100,
    max_job_rows: Annotated[int, typer.Option(help="Rows of a job.", min=1, rich_help_panel="Bounds")] = 1_000_000,
    max_job_body: Annotated[
        int, typer.Option(help="Bytes of a job, a row a line.", min=1, rich_help_panel="Bounds")
    ] = 268_435_456,
    quiet_log: Annotated[bool, typer.Option("--no-log", help="No line of JSON on stderr for each request.")] = False,
    otel: Annotated[
        bool,
        typer.Option(
            "--otel", help="Send OpenTelemetry spans by OTLP over HTTP, to the address in the OTEL_… variables."
        ),
    ] = False,
    lm: LM = None,
    api_base: ApiBases = None,
    timeout: Timeout = 120.0,
    concurrency: Concurrency = None,
    rpm: Rpm = None,
    no_cache: NoCache = False,
) -> None:
    """Answer POST /v1/score {"source", "output"} with the verdict of a saved judge.

    POST /v1/score/many streams a line a row; POST /v1/jobs judges rows in the background; GET /v1/judges, /healthz,
    /readyz, /metrics (Prometheus), /openapi.json; a page to try it at /. With JUDGESMITH_API_KEY set, requests need
    `Authorization: Bearer KEY`. There is no TLS: put a proxy before it. SIGTERM finishes what was accepted.
    """
    from ..running.console import err
    from ..running.opening import connection

    try:
        from .run import KEYS, bound, keys
        from .service import Bounds
        from .workers import Order, Workers
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"serving needs {error.name}, which is not installed: pip install 'judgesmith[serve]'"
        ) from None
    bounds = Bounds(queue, row_timeout, max_body, max_rows, grace, max_jobs, max_job_rows, max_job_body)
    protected = bool(keys())
    files, where = named(judges), connection(api_base, timeout, concurrency, rpm, no_cache)
    listening = bound(host, port)
    if not protected and host not in ("127.0.0.1", "::1", "localhost"):
        err.print(f"note: anyone who reaches {host} can spend calls; set {KEYS}", style="yellow", markup=False)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}"

    def started() -> None:
        err.print(f"serving {', '.join(files)} at {address}", markup=False, soft_wrap=True)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as passing:
        order = Order(files, lm, where, bounds, (jobs or Path(passing)).resolve(), not quiet_log, otel)
        if workers == 1:
            order.run(listening, started)
        else:
            Workers(order, listening, workers).run(started)


def named(judges: list[str]) -> dict[str, Path]:
    """Files by the names that requests call their judges by. Raises OptionError."""
    found: dict[str, Path] = {}
    for text in judges:
        name, equals, file = text.partition("=")
        path = Path(file if equals else text)
        name = name if equals else path.stem
        if not name or "@" in name or name in found:
            raise OptionError(f"{text!r}: each judge needs a name of its own without @; give NAME=FILE")
        found[name] = path
    return found
