"""Write the reference of the command line from the commands themselves.

    python docs/commands.py [--check]

--check changes nothing and fails if the page and the commands differ.
"""

import inspect
import sys
from pathlib import Path

from typer.main import get_command

from judgesmith.cli.commands import Command, shown
from judgesmith.cli.main import EXIT_CODES, app, command_model
from judgesmith.cli.outputs import OUTPUTS

PAGE = Path(__file__).resolve().parent / "pages/reference/cli.md"
TOP = """# Command line

Every command with its arguments and options, the everyday ones first. `judgesmith list options COMMAND` adds those that
depend on the method and the optimizer. `--config FILE.yaml` takes all of them by the same names, in every command.

Written by `python docs/commands.py`.
"""


def cell(text: str) -> str:
    """Return a text as a cell of a markdown table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def rows(model: type[Command]) -> list[str]:
    """Return a row for each argument and option, the everyday ones first."""
    everyday = [name for name, _ in shown(model)]
    every = dict(shown(model, every=True))
    order = [*everyday, *(name for name in every if name not in everyday)]
    return [f"| `{cell(name)}` | {cell(every[name])} |" for name in order]


def codes() -> list[str]:
    """Return the table of exit codes."""
    rows = [f"| {code} | {cell(meaning)} |" for code, meaning in EXIT_CODES.items()]
    return ["## Exit codes\n", "| Code | Meaning |", "|---|---|", *rows, ""]


def outputs() -> list[str]:
    """Return the tables of what `--json` prints, from its models."""
    lines = [
        "## What --json prints\n",
        "One object on stdout, at the end. `judgesmith list schemas COMMAND` prints the JSON schema. Other keys may be "
        "there; those named here stay.\n",
    ]
    for output in OUTPUTS.values():
        lines += [f"{output.__doc__}\n", "| | |", "|---|---|"]
        for name, field in output.model_fields.items():
            lines.append(f"| `{name}` | {cell(field.description or '')} |")
        lines.append("")
    return lines


def page() -> str:
    """Return the page."""
    group = get_command(app)
    lines = [TOP]
    names = group.list_commands(None)  # type: ignore[attr-defined]
    for name in [*names, "study optimizers"]:
        model = command_model(name.split())
        if model is None or name == "study":
            continue
        lines += [
            f"## judgesmith {name}\n",
            f"{inspect.cleandoc(model.__doc__ or '')}\n",
        ]
        if model.example:
            lines.append(f"```console\n$ {model.example}\n```\n")
        lines += ["| | |", "|---|---|", *rows(model), ""]
    return "\n".join([*lines, *codes(), *outputs()]).rstrip() + "\n"


def main() -> int:
    """Write the page, or check it."""
    text = page()
    if "--check" in sys.argv:
        return int(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
