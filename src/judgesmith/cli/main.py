"""The command line: its commands, and how errors become exit codes."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

from ..compiling import command as compile
from ..compiling import demo_command as demo
from ..compiling import new_command as new
from ..compiling import references_command as references
from ..discerning import command as discern
from ..errors import JudgesmithError, LabelsError
from ..evaluating import command as evaluate
from ..evaluating import estimate_command as estimate
from ..evaluating import spans_command as spans
from ..evaluating import suggest_command as suggest
from ..experiments.studies import command as study
from ..labelling import command as label
from ..reports import command as report
from ..running.plain import one_line, shown_streams
from ..scoring import command as score
from ..serving import command as serve
from ..training import command as distill
from ..training import synthesize_command as synthesize
from ..watching import browse_command as browse
from ..watching import command as watch
from ..watching import diff_command as diff
from . import aspects, data, models, parts, show
from .settings import UsageError

app = typer.Typer(
    name="judgesmith",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Turn a handful of human scores into a language-model judge, and say honestly how far to trust it.",
    epilog="Exit codes: 0 done; 1 some rows have no score (diff, watch: something differs); 2 an error, in one line; "
    "130 stopped by Ctrl-C.",
)
# In the order of --help.
for command in (
    label, compile, synthesize, distill, new, score, serve, watch, show, diff, evaluate, estimate, suggest, spans,
    report, browse, discern, study, demo, parts, aspects, references, data, models,
):  # fmt: skip
    command.register(app)


def _version(asked: bool) -> None:
    if asked:
        from .. import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_version)
    ] = False,
) -> None: ...


ERROR, STOPPED = 2, 130


def main() -> None:
    """The entry point: one line for an error, no traceback (set JUDGESMITH_DEBUG=1 to see it)."""
    with shown_streams():
        code = _run()
        try:
            sys.stdout.flush()
        except OSError as error:
            code = _without_stdout(error)
        sys.exit(code)


def _run() -> int:
    """The command's exit code. Whatever goes wrong is 2: 1 is what a command gives a meaning to."""
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
        first, *more = error.problems if isinstance(error, LabelsError) and error.problems else [str(error)]
        return _say(f"{type(error).__name__}: {first}", *more)
    except OSError as error:
        if debug:
            raise
        return _without_stdout(error)
    except MemoryError:
        if debug:
            raise
        return _say("there is not enough memory for this; give fewer rows at a time (--limit), or a smaller file")
    except Exception as error:
        if debug:
            raise
        return _say(
            f"internal error: {type(error).__name__}: {error} (set JUDGESMITH_DEBUG=1 to see the traceback; please "
            "report it)"
        )
    if code == STOPPED:  # typer turns Ctrl-C into this exit code without a word
        _say("stopped; finished calls and rows are kept, the same command resumes from there")
    return code or 0


def _say(*lines: str) -> int:
    """A line on stderr, or several for several problems at once, and the exit code for an error."""
    with suppress(OSError):  # the reader has gone
        sys.stderr.write("".join(f"{one_line(line)}\n" for line in lines))
    return ERROR


def _without_stdout(error: OSError) -> int:
    """Says an error of the system. What stdout still holds is dropped if it cannot be written, so that the
    interpreter does not fail on it a second time."""
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
    """A wrong command line in one line, or the help where nothing was given."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return
    command = error.ctx.command_path if error.ctx is not None else "judgesmith"
    _say(f"{error.format_message()} (see {command} --help)")


if __name__ == "__main__":
    main()
