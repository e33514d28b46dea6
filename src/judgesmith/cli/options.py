"""Options that several commands have, with their help."""

from __future__ import annotations

from typing import Annotated

import typer

LM = Annotated[
    str | None,
    typer.Option(
        "--lm",
        help="Language model: openai/…, anthropic/… and any other LiteLLM name, ollama_chat/…, local/NAME (see "
        "`judgesmith models list`), gguf:PATH.",
        envvar="JUDGESMITH_LM",
        rich_help_panel="Language model",
    ),
]
ApiBase = Annotated[
    str | None,
    typer.Option(help="Address of an OpenAI-style server, or of Ollama.", rich_help_panel="Language model"),
]
ApiBases = Annotated[
    list[str] | None,
    typer.Option(
        "--api-base",
        help="Address of an OpenAI-style server, or of Ollama. Repeatable: servers of one model share the calls, and "
        "one that is down is left out.",
        rich_help_panel="Language model",
    ),
]
Timeout = Annotated[float, typer.Option(help="Seconds to wait for one answer.", rich_help_panel="Language model")]
Concurrency = Annotated[
    int | None, typer.Option(help="Calls in flight at most.", min=1, rich_help_panel="Language model")
]
Rpm = Annotated[float | None, typer.Option(help="Calls a minute at most.", rich_help_panel="Language model")]
NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Ask again what was answered before.", rich_help_panel="Language model")
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="ROLE=NAME",
        help="Which column plays a role: output, source, score, id, doc_id, group, system, context, reference, "
        "messages, rater, output_a, output_b, winner. Found by name where not given. Repeatable.",
        rich_help_panel="Data",
    ),
]
Limit = Annotated[int | None, typer.Option(help="Only the first rows.", min=1, rich_help_panel="Data")]
Json = Annotated[bool, typer.Option("--json", help="End with one JSON object on stdout, for machines.")]


def complete_method(incomplete: str) -> list[tuple[str, str]]:
    from ..programs.registry import judges

    return [(name, part.about) for name, part in judges.parts().items() if name.startswith(incomplete)]


def _optimizers(incomplete: str) -> list[tuple[str, str]]:
    from ..optimizers.registry import optimizers

    return [(name, part.about) for name, part in optimizers.parts().items() if name.startswith(incomplete)]


Method = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="How it judges: see `judgesmith methods`. Default: readings where the model can be read (local/…, "
        "gguf:…, or --set reader=…), else active-critic.",
        autocompletion=complete_method,
    ),
]
Optimizer = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="How it is compiled: see `judgesmith optimizers`. Default: none for readings, else random-search.",
        autocompletion=_optimizers,
    ),
]
LibraryAspect = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="[TASK/]ASPECT",
        help="The aspect of the library that the score stands for (`judgesmith aspects`); found by the score's "
        "name where not given.",
    ),
]
MaxCalls = Annotated[int | None, typer.Option(help="Calls at most in this run.", min=1, rich_help_panel="Limits")]
MaxCost = Annotated[
    float | None,
    typer.Option(help="Dollars at most in this run; what is in flight is still paid.", rich_help_panel="Limits"),
]
MaxFailed = Annotated[
    str | None,
    typer.Option(
        metavar="N|P%",
        help="Stop when more rows than this have no score: a number, or a share of those judged in this run.",
        rich_help_panel="Limits",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what the run would take, spend nothing.", rich_help_panel="Limits")
]
