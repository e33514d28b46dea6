"""`judgesmith list`: methods, optimizers, perturbations, metrics, presets, aspects, options, data sets and models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rich.markup import escape
from rich.table import Table

from ..errors import ModelError, OptionError
from ..parts import Options, Registry, describe
from ..running.console import err, out, print_json
from .commands import Command, Json, argument, flag

if TYPE_CHECKING:
    from ..datasets.benchmarks.registry import BenchmarkCard
    from ..programs.aspects import Aspect, AspectLibrary, Task

#: Where the parts of a kind are registered.
REGISTRIES = {
    "methods": ("programs.registry", "judges"),
    "optimizers": ("optimizers.registry", "optimizers"),
    "perturbations": ("datasets.perturbations.registry", "perturbations"),
    "metrics": ("programs.registry", "metrics"),
}
#: What a data set's place is called in the table of all sets, and on its card.
PLACES = {
    "folder": ("folder", "the folder of JUDGESMITH_DATA"),
    "package": ("package", "an installed package"),
    "cache": ("cache", "the cache"),
    "fetchable": ("to fetch", "not here; `judgesmith get bench/NAME` brings it"),
    "unavailable": ("nowhere", "not here, and it cannot be fetched; JUDGESMITH_DATA names a folder that has it"),
}


class List(Command, Json):
    """List what there is of a kind, or show one of them in full.

    methods: how a judge can judge, `judgesmith compile --method NAME`. optimizers: how it can be compiled,
    `--optimizer NAME`. perturbations: how `judgesmith discern --perturb NAME` changes texts. metrics: what `judgesmith
    evaluate --judge metric/NAME` measures. presets: settings of the papers, `--preset NAME`. aspects: of quality, by
    task. options COMMAND: what a command takes beside what its --help shows. data: benchmark sets with human scores.
    models: language models that need no key.
    """

    panel: ClassVar[str] = "Look"

    what: Literal[
        "methods", "optimizers", "perturbations", "metrics", "presets", "aspects", "options", "data", "models"
    ] = argument(..., "The kind.", "WHAT")
    name: str | None = argument(None, "One of them, in full.", "NAME")
    host: str | None = flag(None, "models: the address of Ollama.")

    def run(self) -> None:
        kinds: dict[str, Callable[[], None]] = {
            "presets": self._presets, "aspects": self._aspects, "options": self._options, "data": self._data,
            "models": self._models,
        }  # fmt: skip
        kinds.get(self.what, self._parts)()

    # Parts ------------------------------------------------------------------------------------------------------------

    def _parts(self) -> None:
        module, attribute = REGISTRIES[self.what]
        registry: Registry[Any] = getattr(import_module(f"judgesmith.{module}"), attribute)
        if self.name is None and self.as_json:
            print_json({"parts": [_facts(*item) for item in registry.parts().items()], "broken": registry.broken})
        elif self.name is None:
            _print_table(
                ("name", "what it is", "paper"),
                [(name, part.about, _paper(part)) for name, part in registry.parts().items()],
            )
            for name, problem in registry.broken.items():
                err.print(f"the plug-in {name} is left out: {problem}", markup=False, style="red", soft_wrap=True)
        else:
            part = registry.get(self.name)
            name = next(known for known, one in registry.parts().items() if one is part)
            print_json(_facts(name, part)) if self.as_json else _print_part(name, part)

    def _options(self) -> None:
        from .main import command_model

        model = command_model((self.name or "").split())
        catalogue = model.catalogue({}) if model is not None else None
        if catalogue is None:
            raise OptionError(f"{self.name or ''!r} is not a command with options beside those of its --help")
        if self.as_json:
            print_json({"options": {owner.where: _listed(owner.options) for owner in catalogue.owners}})
            return
        for owner in catalogue.owners:
            out.print(f"[bold]{escape(owner.where)}[/bold]")
            _print_options(owner.options)

    def _presets(self) -> None:
        from .. import presets

        if self.name is not None and self.as_json:
            print_json(presets.read(self.name))
        elif self.name is not None:
            out.print(presets.text(self.name).rstrip(), markup=False, highlight=False, soft_wrap=True)
        elif self.as_json:
            shown = ({"name": n, "kind": presets.kind(n), "about": presets.about(n)} for n in presets.names())
            print_json({"presets": list(shown)})
        else:
            _print_table(
                ("name", "kind", "what it is"), [(n, presets.kind(n), presets.about(n)) for n in presets.names()]
            )

    # Aspects ----------------------------------------------------------------------------------------------------------

    def _aspects(self) -> None:
        from ..programs.aspects import aspects

        library = aspects()
        task = library.tasks.get(self.name or "") or (None if self.name is None else _task(library, self.name))
        if self.name is not None and task is None:
            aspect = _aspect(library, self.name)
            if self.as_json:
                print_json({"aspect": _aspect_data(aspect), "task": _task_data(library.tasks[aspect.task])})
            else:
                _show_aspect(library, aspect)
            return
        tasks = list(library.tasks.values()) if task is None else [task]
        if self.as_json:
            listed = [_task_data(one) | {"aspects": [_aspect_data(a) for a in one.aspects.values()]} for one in tasks]
            print_json({"tasks": listed})
        else:
            _show_tasks(tasks)

    # Data sets --------------------------------------------------------------------------------------------------------

    def _data(self) -> None:
        from ..datasets.benchmarks.catalog import benchmark, list_benchmarks

        if self.name is not None:
            card = benchmark(self.name)
            here = set_data(card)
            if self.as_json:
                print_json(card.to_json() | {key: here[key] for key in ("where", "path", "rows_here")})
            else:
                _show_card(card, here)
            return
        sets = [set_data(card) for card in list_benchmarks()]
        if self.as_json:
            print_json({"sets": sets})
            return
        # Without lines and with the task below the name, it fits 80 columns.
        table = Table(title="Benchmark sets", title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for column in ("name, task", "rows", "aspects", "licence", "where"):
            justify: Literal["left", "right"] = "right" if column == "rows" else "left"
            table.add_column(column, justify=justify, overflow="fold", no_wrap=column == "name, task")
        for item in sets:
            licence = item["licence"] + (f"\n[yellow]{item['restriction']}[/yellow]" if item["restriction"] else "")
            table.add_row(
                f"{item['name']}\n[dim]{item['task']}[/dim]", rows_of(item).replace(" of ", "/"),
                ", ".join(item["aspects"]), licence, PLACES[item["where"]][0],
            )  # fmt: skip
        out.print(table)
        for short, meaning in PLACES.values():
            if any(PLACES[item["where"]][0] == short for item in sets):
                out.print(f"{short}: {meaning}", markup=False, style="dim")
        out.print("`judgesmith list data NAME` prints a set's card.", style="dim")

    # Models -----------------------------------------------------------------------------------------------------------

    def _models(self) -> None:
        from ..programs.models import files
        from ..programs.models.ollama import list_ollama

        models: list[dict[str, Any]] = [
            {"name": f"local/{m.name}", "size_mb": round(m.bytes / 1e6), "licence": m.licence,
             "installed": files.installed(m.name)}
            for m in files.CATALOG.values()
        ]  # fmt: skip
        problem = None
        try:
            models += [
                {"name": f"ollama_chat/{name}", "size_mb": round(size / 1e6), "licence": "", "installed": True}
                for name, size in list_ollama(self.host).items()
            ]
        except ModelError as error:
            problem = str(error)
        if self.as_json:
            print_json({"models": models, "ollama_problem": problem})
            return
        table = Table(title="Models that need no key")
        for column in ("name", "size", "licence", "here"):
            table.add_column(column, justify="right" if column == "size" else "left")
        for model in models:
            here = "yes" if model["installed"] else "no"
            table.add_row(escape(model["name"]), f"{model['size_mb']:,} MB", escape(model["licence"]), here)
        out.print(table)
        if problem:
            out.print(f"Ollama: {problem}", style="dim", markup=False)
        out.print("Fetch one with `judgesmith get NAME`. Any LiteLLM name works too (openai/…, anthropic/…).")


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column == columns[0])
    for row in rows:
        table.add_row(*map(escape, row))
    out.print(table)


def _card() -> Table:
    table = Table(title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    return table


def _listed(options: type[Options]) -> list[dict[str, Any]]:
    return [
        {"name": o.name, "type": o.type, "default": default, "help": o.help}
        for o, default in zip(describe(options), options().settings().values(), strict=True)
    ]


def _paper(part: Any) -> str:
    """Where a part is from; of a stand-in what it stands for."""
    stands_for = getattr(part, "stands_for", "")
    return f"ours, instead of {stands_for}" if stands_for else getattr(part, "paper", "")


def _facts(name: str, part: Any) -> dict[str, Any]:
    return {
        "name": name,
        "about": part.about,
        "paper": _paper(part),
        "aliases": list(getattr(part, "aliases", ())),
        "options": _listed(getattr(part, "Options", Options)),
    }


def _print_part(name: str, part: Any) -> None:
    facts = _facts(name, part)
    also = f" (also {', '.join(facts['aliases'])})" if facts["aliases"] else ""
    out.print(f"[bold]{escape(name)}[/bold]{escape(also)}: {escape(part.about)}")
    if facts["paper"]:
        out.print(facts["paper"], markup=False, style="dim")
    if not facts["options"]:
        out.print("It has no options.")
        return
    _print_options(part.Options)
    out.print("Set one with --NAME VALUE, or in a --config file.")


def _print_options(options: type[Options]) -> None:
    _print_table(
        ("option", "type", "default", "what it does"),
        [(one.name, one.type, one.default, one.help) for one in describe(options)],
    )


def _task(library: AspectLibrary, name: str) -> Task | None:
    try:
        return library.task(name)
    except OptionError:
        return None  # then it is an aspect's name


def _aspect(library: AspectLibrary, name: str) -> Aspect:
    try:
        return library.find(name)
    except OptionError as error:
        if "/" in name:
            raise
        raise OptionError(f"{error}. The tasks are: {', '.join(library.tasks)}") from None


def _task_data(task: Task) -> dict[str, Any]:
    return task.model_dump(mode="json", exclude={"aspects"})


def _aspect_data(aspect: Aspect) -> dict[str, Any]:
    return aspect.model_dump(mode="json") | {"scoring": aspect.scoring}


def _show_tasks(tasks: list[Task]) -> None:

    for task in tasks:
        table = Table(
            title=f"[bold]{escape(task.name)}[/bold]: {escape(task.description)}", title_style="", title_justify="left",
            box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False,
        )  # fmt: skip
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for aspect in task.aspects.values():
            marks = " [yellow](more is worse)[/yellow]" if aspect.negative else ""
            table.add_row(escape(aspect.name), escape(aspect.definition) + marks)
        out.print(table)
        inputs = task.source if task.context is None else f"{task.source}, {task.context}"
        out.print(f"from: {inputs}; to: {task.output}\n", style="dim", markup=False)
    out.print("`judgesmith list aspects TASK/ASPECT` prints one in full.", style="dim")


def _show_aspect(library: AspectLibrary, aspect: Aspect) -> None:

    task = library.tasks[aspect.task]
    table = _card()
    table.title = escape(f"{aspect.task}/{aspect.name}")
    judged = task.output
    if aspect.needs_source:
        judged += f", beside the {task.source}" + (f" and the {task.context}" if task.context else "")
    for title, text in {
        "what counts": aspect.definition,
        "leave aside": "; ".join(aspect.leave_aside) or "nothing",
        "Unacceptable": aspect.low,
        "Excellent": aspect.high,
        "judged": judged,
        "scores": aspect.scoring,
        "also called": ", ".join(aspect.aliases) or "–",
        "task": task.description,
    }.items():
        table.add_row(title, escape(text))
    out.print(table)
    same = [t.name for t in library.tasks.values() if t.name != aspect.task and aspect.name in t.aspects]
    if same:
        out.print(f"It means something else in: {escape(', '.join(same))}", style="dim")


def _show_card(card: BenchmarkCard, here: dict[str, Any]) -> None:
    table = _card()
    table.title = f"{card.name}: {escape(card.title)}"
    systems = "systems not named" if card.systems is None else f"{card.systems} system{'s'[: card.systems != 1]}"
    where = PLACES[here["where"]][1]
    if here["path"] is not None:
        part = here["rows_here"] != here["rows"]
        where += f": {here['path']}"
        where += f"\n{rows_of(here)} rows: published numbers are for all of them" if part else ""
    origin = card.origin
    for title, text in {
        "task": card.task,
        "rows": f"{card.rows:,} ({card.documents:,} documents, {systems})",
        "aspects": "\n".join(f"{aspect} {_scale(*scale)}" for aspect, scale in card.aspects.items()),
        "published as": card.aggregation,
        "paper": f"{card.paper}\n{card.paper_url}",
        "licence": licence_of(card),
        "where": where,
        "origin": f"cannot be fetched: {card.unfetchable}" if origin is None else
                  f"{origin.repository}, {origin.path}\ncommit {origin.commit}\n{origin.bytes:,} bytes, SHA-256 "
                  f"{origin.sha256}",
        "beside the rows": ", ".join(f"{card.key}.{extra}.jsonl" for extra in card.extras) or "nothing",
        "mind": "\n".join(f"- {quirk}" for quirk in card.quirks),
    }.items():  # fmt: skip
        table.add_row(title, escape(text))
    out.print(table)


def set_data(card: BenchmarkCard) -> dict[str, Any]:
    """What the table of all sets says about one; `rows_here` is None where the set is not here."""
    from ..datasets.benchmarks.catalog import locate
    from ..datasets.loading import count_rows

    place = locate(card.name)
    return {
        "name": card.name,
        "task": card.task,
        "rows": card.rows,
        "rows_here": None if place.path is None else count_rows(place.path),
        "aspects": list(card.aspects),
        "licence": card.licence,
        "restriction": card.restriction,
        "where": place.kind,
        "path": None if place.path is None else str(place.path),
    }


def rows_of(item: dict[str, Any]) -> str:
    part = item["rows_here"] not in (None, item["rows"])
    return f"{item['rows_here']:,} of {item['rows']:,}" if part else f"{item['rows']:,}"


def licence_of(card: BenchmarkCard) -> str:
    mark = f" [{card.restriction.upper()}]" if card.restriction else ""
    return f"{card.licence}{mark}. {card.licence_note}"


def _scale(worst: float, best: float) -> str:
    return f"{worst:g}..{best:g}" if worst != float("-inf") else f"up to {best:g} (no worst end)"
