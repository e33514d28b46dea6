"""Options that several commands have, with their help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

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
        help="Which column plays a role: output, source, score, id, doc_id, group, system, context, reference. "
        "Found by name where not given. Repeatable.",
        rich_help_panel="Data",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="End with one JSON object on stdout, for machines.")]

# What `compile` and `new` are told of the judge

Variant = Literal["vanilla", "coarse", "fine"]
Explain = Literal["auto", "before", "after"]
Reading = Literal["auto", "said", "expected"]
Method = Literal["active-critic", "openlgauge", "pairwise-direct", "pairwise", "g-eval", "direct", "pairs"]
SupervisedBy = Literal["lm", "none"]


class OtherVariant(StrEnum):  # an enumeration, since typer takes no list of a Literal
    vanilla = "vanilla"
    coarse = "coarse"
    fine = "fine"


class Without(StrEnum):  # as above
    task = "task"
    criteria = "criteria"
    os_e = "os-e"
    explanations = "explanations"


JudgeMethod = Annotated[
    Method,
    typer.Option(
        help="active-critic: scores with explanations; openlgauge: marks error spans, by one annotator or several; "
        "pairwise-direct (or pairwise): compares with graded references that the model writes once a document; "
        "g-eval: scores by steps that the model writes once; direct: one number; pairs: ranks the outputs of each "
        "document by comparing them with each other (best with --level sample).",
        rich_help_panel="Judge",
    ),
]
JudgeVariant = Annotated[
    Variant,
    typer.Option(
        help="vanilla: demonstrations only; coarse: task and criteria in the prompt; fine: a score for each "
        "criterion first.",
        rich_help_panel="Judge",
    ),
]
JudgeExplain = Annotated[
    Explain,
    typer.Option(
        help="Explanation before or after the score; auto measures both on the labels.", rich_help_panel="Judge"
    ),
]
JudgeReading = Annotated[
    Reading,
    typer.Option(
        help="The number said, or its expectation under the model's probabilities; auto measures both on the labels.",
        rich_help_panel="Judge",
    ),
]
TaskText = Annotated[
    str | None,
    typer.Option(help="What is judged, in your words, in place of inferring it.", rich_help_panel="Judge"),
]
CriteriaFile = Annotated[
    Path | None,
    typer.Option(
        help="Your criteria in place of inferred ones: JSON {name: definition}, or lines `name: definition`.",
        rich_help_panel="Judge",
    ),
]
LeftOut = Annotated[
    list[Without] | None,
    typer.Option(help="Ablations of the paper: leave a part out. Repeatable.", rich_help_panel="Judge"),
]
LibraryAspect = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="[TASK/]ASPECT",
        help="The aspect of the library that the score stands for (`judgesmith aspects`); found by the score's "
        "name where not given.",
        rich_help_panel="Other methods than active-critic",
    ),
]
AspectFile = Annotated[
    Path | None,
    typer.Option(
        "--aspects",
        help="A YAML file that adds aspects to the library or changes some.",
        rich_help_panel="Other methods than active-critic",
    ),
]
Annotators = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODEL[@TEMPERATURE]",
        help="openlgauge: a model of the ensemble; repeatable. Without any, --lm annotates alone.",
        rich_help_panel="Other methods than active-critic",
    ),
]
Supervisor = Annotated[
    SupervisedBy,
    typer.Option(
        help="openlgauge: who merges the annotators' errors: lm, the model of --lm; none, overlap and similarity.",
        rich_help_panel="Other methods than active-critic",
    ),
]
ReferenceLevels = Annotated[
    int,
    typer.Option(
        "--references",
        help="pairwise-direct: graded references a document, 2 to 9.",
        rich_help_panel="Other methods than active-critic",
    ),
]
Writer = Annotated[
    str | None,
    typer.Option(
        help="pairwise-direct: the model that writes the references, if not --lm.",
        rich_help_panel="Other methods than active-critic",
    ),
]
ComparisonForm = Annotated[
    Literal["better-worse", "yes-no"] | None,
    typer.Option(
        help="pairwise-direct, pairs: the question of a comparison: Better, Worse or Similar; or whether it is better, "
        "Yes or No, which small models answer with less regard to the order. Default better-worse.",
        rich_help_panel="Other methods than active-critic",
    ),
]
ComparisonOrder = Annotated[
    Literal["other-first", "output-first", "both"] | None,
    typer.Option(
        help="pairwise-direct, pairs: which output of a comparison stands first; both asks twice and takes the mean, "
        "against a preference for a place. Default other-first.",
        rich_help_panel="Other methods than active-critic",
    ),
]
