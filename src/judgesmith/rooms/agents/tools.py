"""The server: each tool runs a command in a process of its own, and answers with what `--json` prints."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from judgesmith import __version__
from judgesmith.cli.commands import (
    Command,
    Json,
    fields_shown,
    filled,
    first_sentence,
    paragraphs,
)
from judgesmith.cli.main import ERROR, command_model
from judgesmith.cli.outputs import OUTPUTS
from judgesmith.extras import from_extra

#: Commands that end by themselves; `label` waits for people, who start it.
NAMES = ("check", "compare", "compile", "score", "report")
#: For the agent, before its first call.
ADVICE = """\
Find out whether an LLM judge may be trusted, compare versions of a system, and make a judge from human ratings.
Show people the sentence of an answer, with its interval. Never rate rows in a person's place: people rate on the page
of `judgesmith label FILE`, which they start. Before `compile`, call it with dry_run and say what it costs.
A call that was cut off resumes when it is made again."""


def server() -> Any:
    """Return the server, with a tool for each command.

    Raises:
        MissingExtraError: If `mcp` is not installed.
    """
    library = from_extra("mcp", "judgesmith mcp", "mcp.server.mcpserver")
    result = library.MCPServer(
        "judgesmith", version=__version__, instructions=ADVICE, log_level="WARNING"
    )
    for name in NAMES:
        model = command_model([name])
        assert model is not None
        run = tool(name, model, library.exceptions.ToolError)
        result.add_tool(run, name, description=" ".join(paragraphs(model)))
    return result


def tool(
    name: str, model: type[Command], failure: type[Exception]
) -> Callable[..., Awaitable[Any]]:
    """Return a function that runs a command; its parameters are the command's arguments and everyday options.

    Args:
        name: The command, such as `check`.
        model: Its options.
        failure: What to raise, with the command's own words, where it ends in an error.
    """

    async def run(**options: Any) -> Any:
        given = {key: value for key, value in options.items() if value is not None}
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder, "options.json")
            config.write_text(json.dumps(given, default=str), encoding="utf-8")
            code, out, err = await _run(name, "--config", str(config), "--json")
        if code == ERROR or not out:
            raise failure(err.strip())
        return json.loads(out)

    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        _parameters(model), return_annotation=_printed(name)
    )
    return run


async def _run(*words: str) -> tuple[int | None, str, str]:
    """Return exit code, stdout and stderr of a command, which ends with the call."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-m", "judgesmith", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
    return process.returncode, out.decode("utf-8"), err.decode("utf-8", "replace")


def _parameters(model: type[Command]) -> list[inspect.Parameter]:
    """Return what `--help` shows of a command as parameters, less those that the tool gives."""
    result = []
    for name, field in fields_shown(model):
        if name in (*Json.model_fields, "config"):
            continue
        said = first_sentence(filled(field.description or ""))
        needed = field.is_required()
        kind: Any = field.annotation
        result.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if needed else None,
                annotation=Annotated[
                    kind if needed else kind | None, Field(description=said)
                ],
            )
        )
    return result


def _printed(name: str) -> Any:
    """Return the type of what a command prints; of `compile`, also that of a dry run."""
    return reduce(
        or_, [output for key, output in OUTPUTS.items() if key.split()[0] == name]
    )
