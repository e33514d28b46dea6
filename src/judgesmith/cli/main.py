"""The command line: its commands, and how errors become exit codes."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from judgesmith.cli.commands import (
    Command,
    Group,
    UsageError,
    build,
    first_sentence,
)
from judgesmith.errors import JudgesmithError, LabelsError, OutageError
from judgesmith.extras import absent_room, without_room
from judgesmith.parts import nearest
from judgesmith.running.plain import one_line, shown_streams

logger = logging.getLogger(__name__)
GROUP = "judgesmith.commands"
#: What `--help` shows first, and what it shows behind that; `judgesmith list commands` has all.
FRONT = ("demo", "check", "compare", "compile", "score", "label", "report", "serve")
BESIDE = ("new", "show", "list", "get")
ORDER = (*FRONT, *BESIDE)
#: What an exit code means; those of a command alone stand behind its name.
EXIT_CODES = {
    0: "done",
    1: "some rows have no score, or a condition was not met (--fail-under); compare: worse; watch: an alarm",
    2: "an error, in one line",
    3: "compare: undecided; compile: a search waits for --yes",
    75: "the model's server does not answer: come again, the same command resumes",
    130: "stopped by Ctrl-C; the same command resumes",
    143: "stopped by SIGTERM; the same command resumes",
}


def _installed() -> list[EntryPoint]:
    points = entry_points(group=GROUP)
    return [point for point in points if absent_room(point.module) is None]


def _absent() -> dict[str, list[str]]:
    """Return the commands of each room of judgesmith that this installation lacks."""
    found: dict[str, list[str]] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        if (room := absent_room(point.module)) is not None:
            found.setdefault(room, []).append(point.name)
    return found


@cache
def _tell_what_is_absent() -> None:
    if absent := _absent():
        commands = ", ".join(name for names in absent.values() for name in names)
        logger.warning(
            "this installation lacks %s; left out: %s", ", ".join(absent), commands
        )


def _ours(point: EntryPoint) -> bool:
    return point.module.partition(".")[0] == "judgesmith"


class Commands(TyperGroup):
    """Commands that are loaded when they are called. `within` is the group's own name with a dot."""

    within = ""

    def _points(self) -> dict[str, EntryPoint]:
        result = {
            point.name: point
            for point in _installed()
            if point.name.startswith(self.within)
        }
        return {name.removeprefix(self.within): point for name, point in result.items()}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands' names in the order of `--help`."""
        _tell_what_is_absent()
        names = [name for name in self._points() if "." not in name]
        return sorted(
            names,
            key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name),
        )

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by name; None if there is none."""
        point = self._points().get(cmd_name)
        if point is None:
            return None
        try:
            loaded = point.load()
        except Exception as error:
            missing = getattr(error, "name", None)
            # An editable installation may still name a command whose module went.
            gone = missing == point.module or absent_room(missing) is not None
            if _ours(point) and not gone:
                raise
            logger.warning("command plug-in %r is left out: %s", cmd_name, error)
            return None
        if isinstance(loaded, Group):
            return _group(f"{self.within}{cmd_name}.", loaded, cmd_name)
        if isinstance(loaded, typer.Typer):
            return typer.main.get_command(loaded)
        return build(cmd_name, loaded)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in front, those beside them, those of other packages, and where the rest is."""
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text(self.help or "")
        said = self.sentences(ctx)
        others = [name for name in said if name not in ORDER]
        if not self.within:
            others = [name for name in others if not _ours(self._points()[name])]
        sections = {"Commands": FRONT, "Beside them": BESIDE, "Others": others}
        for title, names in sections.items():
            rows = [(name, said[name]) for name in names if name in said]
            if rows:
                with formatter.section(title if not self.within else "Commands"):
                    formatter.write_dl(rows)
        if self.within:
            return
        formatter.write_paragraph()
        formatter.write_text(
            "`judgesmith COMMAND --help` shows a command's everyday options and an example. `judgesmith list "
            "commands` lists all commands (further ones watch a judge, compare optimizers, train small models) and "
            "the exit codes. `judgesmith --version` prints the version."
        )

    def sentences(self, ctx: Any) -> dict[str, str]:
        """Return the first sentence of each command's help, by name; old names are left out."""
        found = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                found[name] = first_sentence(" ".join((command.help or "").split()))
        return found

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of the arguments; an unknown one is an error that names similar ones."""
        name = args[0]
        if not name.startswith("-") and name not in self._points():
            for room, commands in _absent().items():
                if f"{self.within}{name}" in commands:
                    raise without_room(room, f"judgesmith {name}")
            raise UsageError(
                f"No such command {name!r}{nearest(name, self.list_commands(ctx))}",
                ctx=ctx,
            )
        return super().resolve_command(ctx, args)


def command_model(words: list[str]) -> type[Command] | None:
    """Return the model of a command (of a group, its first one's); None where there is none."""
    points = {point.name: point for point in _installed()}
    name = ".".join(words)
    if name not in points:
        name = next((one for one in sorted(points) if one.startswith(f"{name}.")), "")
    loaded = points[name].load() if name in points else None
    if isinstance(loaded, Group):
        return command_model(
            [next(one for one in sorted(points) if one.startswith(f"{name}."))]
        )
    return loaded if isinstance(loaded, type) and issubclass(loaded, Command) else None


def _group(within: str, group: Group, name: str) -> Any:
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)
    cls = type("Commands", (Commands,), {"within": within})
    app.callback(cls=cls, help=group.help)(lambda: None)
    command = typer.main.get_command(app)
    command.name = name
    return command


app = typer.Typer(
    name="judgesmith",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Make an LLM judge from a few human ratings, and find out how far to trust it.",
)


def _version(requested: bool) -> None:
    if requested:
        from judgesmith import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and stop.",
            is_eager=True,
            callback=_version,
        ),
    ] = False,
) -> None: ...


ERROR = 2
COME_AGAIN = 75
STOPPED = 130
TERMINATED = 143


def main() -> None:
    """Run the command line: one line for an error, no traceback (set JUDGESMITH_DEBUG=1 to see it)."""
    with shown_streams(), _ended_by_sigterm() as ended:
        code = _run()
        code = TERMINATED if ended and code == STOPPED else code
        try:
            sys.stdout.flush()
        except OSError as error:
            code = _without_stdout(error)
        sys.exit(code)


@contextmanager
def _ended_by_sigterm() -> Iterator[list[int]]:
    """Have SIGTERM, as a pod gets that is to go, end a command as Ctrl-C does; a second one ends it at once.

    Yields a list that is not empty any more when it came. What serves has handlers of its own.
    """
    came: list[int] = []

    def stop(number: int, _: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        came.append(number)
        raise KeyboardInterrupt

    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield came
        return
    signal.signal(signal.SIGTERM, stop)
    try:
        yield came
    finally:
        if signal.getsignal(signal.SIGTERM) is stop:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run() -> int:
    """Return the command's exit code.

    Whatever goes wrong is 2, or 75 where the same may go right later: 1 is what a command gives a meaning to.
    """
    debug = bool(os.environ.get("JUDGESMITH_DEBUG"))
    try:
        code = app(standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = STOPPED
    except UsageError as error:
        _say_usage(error)
        return ERROR
    except JudgesmithError as error:
        if debug:
            raise
        if isinstance(error, LabelsError) and error.problems:
            first, *more = error.problems
        else:
            first, *more = [str(error)]
        said = _say(f"{_public_name(error)}: {first}", *more)
        return COME_AGAIN if isinstance(error, OutageError) else said
    except OSError as error:
        if debug:
            raise
        return _without_stdout(error)
    except MemoryError:
        if debug:
            raise
        return _say(
            "there is not enough memory for this; give fewer rows at a time (--limit), or a smaller file"
        )
    except Exception as error:
        if debug:
            raise
        if (room := absent_room(getattr(error, "name", None))) is not None:
            return _say(f"MissingExtraError: {without_room(room, 'this command')}")
        return _say(
            f"internal error: {type(error).__name__}: {error} (set JUDGESMITH_DEBUG=1 to see the traceback; please "
            "report it)"
        )
    if code == STOPPED:  # typer turns Ctrl-C into this exit code without a word
        _say(
            "stopped; finished calls and rows are kept, the same command resumes from there"
        )
    return code or 0


def _public_name(error: JudgesmithError) -> str:
    """Return the name of the error as `judgesmith.errors` has it: a subclass of another module is a detail."""
    return next(
        kind.__name__
        for kind in type(error).__mro__
        if kind.__module__ == JudgesmithError.__module__
    )


def _say(*lines: str) -> int:
    """Return a line on stderr, or several for several problems at once, and the exit code for an error."""
    with suppress(OSError):  # the reader has gone
        sys.stderr.write("".join(f"{one_line(line)}\n" for line in lines))
    return ERROR


def _without_stdout(error: OSError) -> int:
    """Print a system error and return the exit code.

    Unflushed stdout is discarded if it cannot be written, so that the interpreter does not fail on it a second time.
    """
    if not isinstance(error, BrokenPipeError):
        where = f"{error.filename}: " if error.filename else ""
        _say(f"{type(error).__name__}: {where}{error.strerror or error}")
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ERROR


def _say_usage(error: Any) -> None:
    """Print a usage error in one line, or the help if there were no arguments."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return
    command = error.ctx.command_path if error.ctx is not None else "judgesmith"
    _say(f"{error.format_message()} (see {command} --help)")


if __name__ == "__main__":
    main()
