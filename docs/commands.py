"""Write the reference of the command line from the commands themselves.

    python docs/commands.py [--check]

--check changes nothing and fails if the page and the commands differ.
"""

import inspect
import sys
from pathlib import Path

from typer.main import get_command

from judgesmith.cli.commands import filled
from judgesmith.cli.main import app, command_model
from judgesmith.parts import Options, describe

PAGE = Path(__file__).resolve().parent / "pages/reference/cli.md"
TOP = """# Command line

Every command, its arguments and its everyday options. `judgesmith list options COMMAND` prints those that depend on
the method and the optimizer; `--config FILE.yaml` takes all of them by the same names.

Written by `python docs/commands.py`.
"""


def cell(text: str) -> str:
    """Return a text as a cell of a markdown table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def rows(model: type[Options]) -> list[str]:
    """Return a row for each argument and option: arguments, the command's own options, shared ones."""
    result = []
    own = inspect.get_annotations(model)
    for one, field in zip(describe(model), model.model_fields.values(), strict=True):
        extra = field.json_schema_extra
        cli = extra.get("cli", {}) if isinstance(extra, dict) else {}
        if cli.get("hidden"):
            continue
        names = cli.get("names") or (f"--{one.name.replace('_', '-')}",)
        if cli.get("argument"):
            name = cli.get("metavar") or one.name.upper()
        else:
            name = ", ".join(names)
        if one.default in ("none", "no", "") or field.is_required():
            default = ""
        else:
            default = f" Default: {one.default}."
        order = (not cli.get("argument"), one.name not in own)
        result.append((order, f"| `{name}` | {cell(filled(one.help) + default)} |"))
    return [line for _, line in sorted(result, key=lambda pair: pair[0])]


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
        lines += ["| | |", "|---|---|", *rows(model), ""]
    return "\n".join(lines)


def main() -> int:
    """Write the page, or check it."""
    text = page()
    if "--check" in sys.argv:
        return int(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
