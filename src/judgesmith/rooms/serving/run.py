"""The process that listens: uvicorn on the engine's own loop, so that no request changes threads, and its end."""

from __future__ import annotations

import gc
import ipaddress
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from typing import Any

import dspy
import uvicorn

from judgesmith.errors import OptionError
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models import engine
from judgesmith.programs.models.price import price
from judgesmith.rooms.serving.app import application
from judgesmith.rooms.serving.clients import named
from judgesmith.rooms.serving.gate import Hosts
from judgesmith.rooms.serving.reasons import debugging
from judgesmith.rooms.serving.service import Bounds, Service

#: The variable that holds the keys, separated by commas: with several, keys can be rotated.
KEYS = "JUDGESMITH_API_KEY"
#: Connections that wait to be accepted.
BACKLOG = 4096
#: Seconds that an idle connection stays open: longer than clients keep theirs, so that none is closed under a request.
KEEP_ALIVE = 75
#: Seconds for which a thread that looks at a long row keeps the interpreter, while requests wait for it.
TURN = 0.0005


def keys() -> tuple[str, ...]:
    """Return the keys of the environment.

    Raises:
        OptionError: If a key can be guessed.
    """
    result = tuple(
        key.strip() for key in os.environ.get(KEYS, "").split(",") if key.strip()
    )
    if short := [key for _, key in map(named, result) if len(key) < 16]:
        raise OptionError(
            f"a key in {KEYS} has {len(short[0])} characters; take at least 16"
        )
    return result


def hosts(listening: socket.socket, names: tuple[str, ...]) -> Hosts:
    """Return the values of `Host` that a server answers to.

    names: given by the user.
    """
    place, port = listening.getsockname()[:2]
    everywhere = not ipaddress.ip_address(place).is_loopback
    return Hosts(port, frozenset(name.lower() for name in names), everywhere)


def admitted(set_keys: tuple[str, ...], hosts: Hosts) -> tuple[str, ...]:
    """Return the keys to require: those of the environment, or a new one for this run.

    Raises:
        OptionError: If other machines reach the server and it has none.
    """
    if not set_keys and hosts.everywhere:
        raise OptionError(
            f"other machines reach this address; set {KEYS} to a key of at least 16 characters first"
        )
    return set_keys or (secrets.token_urlsafe(24),)


class _OneLine(logging.Filter):
    """Log records of uvicorn and asyncio in one line, without a traceback, which may hold texts of a request."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and not debugging():
            kind = record.exc_info[0]
            record.msg = f"{record.getMessage().strip()} ({kind.__name__ if kind else 'unknown'})"
            record.args = ()
            record.exc_info = record.exc_text = None
        return True


def bound(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        OptionError: If the address cannot be used.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise OptionError(
            f"cannot listen at {host} port {port}: {error.strerror or error}"
        ) from None


def use_fast_loop() -> None:
    """Use uvloop's event loop, if it is installed; call it before the engine's first use."""
    with suppress(ImportError):
        import uvloop

        engine.make_loop = uvloop.new_event_loop


def many_files() -> None:
    """Raise the limit of open files as far as the system allows: each connection is one."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def prepared(service: Service) -> None:
    """Bring this process into the state to serve from."""
    many_files()
    sys.setswitchinterval(TURN)
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(_OneLine())
    for served in service.judges.values():
        price(
            served.lm.name, Reply("")
        )  # the table of prices is read before requests wait for it
    # What is loaded by now stays: collections that looked through all of it took a tenth of a row's time.
    gc.collect()
    gc.freeze()


def configured(app: Callable[..., Any], bounds: Bounds, **more: Any) -> uvicorn.Config:
    """Return how uvicorn listens."""
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        http="judgesmith.rooms.serving.protocol:FASTEST",
        ws="none",
        backlog=BACKLOG,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(bounds.grace) + 5,
        **more,
    )


def serve(
    service: Service,
    listening: socket.socket,
    *,
    keys: tuple[str, ...],
    hosts: Hosts,
    log: bool,
    started: Callable[[], None],
) -> None:
    """Answer until SIGTERM or Ctrl-C, then finish accepted rows; a second signal hands them back at once.

    keys, hosts: required of each request.
    """
    prepared(service)
    config = configured(
        application(service, keys=keys, hosts=hosts, log=log), service.bounds
    )
    server = uvicorn.Server(config)
    loop = engine.event_loop()

    def stop(*_: Any) -> None:
        loop.call_soon_threadsafe(
            service.hand_back if service.stopping else service.stop
        )
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    # DSPy would keep the last prompts of every judge and model, for `inspect_history`: an eighth of a row's time here,
    # and texts of clients in memory. Requests inherit the setting from the task that listens.
    with dspy.context(disable_history=True):
        running = engine.submit(server.serve(sockets=[listening]))
    started()
    while True:
        with suppress(NotYet):
            running.result(timeout=0.2)
            break
