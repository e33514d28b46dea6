"""`judgesmith list`: methods, optimizers, metrics, coefficients, formats, exports, presets and more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import typer
from rich.markup import escape

from judgesmith.cli.commands import Command, Json, argument, paragraphs, shown
from judgesmith.errors import ModelError, OptionError
from judgesmith.parts import Options, Registry, describe
from judgesmith.running.console import err, out, print_json
from judgesmith.tables import Table

if TYPE_CHECKING:
    from judgesmith.datasets.benchmarks.registry import BenchmarkCard
    from judgesmith.programs.aspects import Aspect, AspectLibrary, Task
    from judgesmith.programs.models.provider import Provider

#: Where the parts of a kind are registered.
REGISTRIES = {
    "methods": ("programs.registry", "methods"),
    "optimizers": ("optimizers.registry", "optimizers"),
    "perturbations": ("datasets.perturbations.registry", "perturbations"),
    "metrics": ("programs.registry", "metrics"),
    "coefficients": ("agreement.coefficients", "coefficients"),
    "formats": ("datasets.formats", "formats"),
    "exports": ("datasets.exports", "exports"),
}
#: What a data set's place means.
PLACES = {
    "folder": "in the folder of JUDGESMITH_DATA",
    "package": "in an installed package",
    "cache": "in the cache",
    "fetchable": "not here; `judgesmith get bench/NAME` brings it",
    "unavailable": "not here, and it cannot be fetched; JUDGESMITH_DATA names a folder that has it",
}


class List(Command, Json):
    """List what can be named: commands, methods, models, data and more.

    With NAME it shows one in detail. methods: judging methods, for `judgesmith compile --method NAME`. optimizers:
    for `--optimizer NAME`. perturbations: for `judgesmith discern --perturb NAME`. metrics: reference metrics, for
    `judgesmith check --judge metric/NAME`. coefficients: of agreement, for `judgesmith check --coefficient NAME`.
    formats: files of rows that can be read. exports: exports of other tools that are read as rows. presets: named
    settings, for `--preset NAME`. aspects: the library's quality aspects, by task. options COMMAND: all options of
    COMMAND. commands: all commands, and the exit codes. schemas: JSON schemas of what `--json` prints. data:
    benchmark sets with human ratings. models: local language models.
    """

    example: ClassVar[str] = "judgesmith list commands"

    what: Literal[
        "methods",
        "optimizers",
        "perturbations",
        "metrics",
        "coefficients",
        "formats",
        "exports",
        "presets",
        "aspects",
        "options",
        "data",
        "models",
        "commands",
        "schemas",
    ] = argument(..., "Kind of component.", "WHAT")
    name: str | None = argument(
        None,
        "Name of one component to show in detail, or of a command for `options`.",
        "NAME",
    )

    def run(self) -> None:
        """Print the components of a kind, or one in detail."""
        kinds: dict[str, Callable[[], None]] = {
            "presets": self._presets,
            "aspects": self._aspects,
            "options": self._options,
            "data": self._data,
            "models": self._models,
            "commands": self._commands,
            "schemas": self._schemas,
        }
        kinds.get(self.what, self._parts)()

    def _parts(self) -> None:
        module, attribute = REGISTRIES[self.what]
        registry: Registry[Any] = getattr(
            import_module(f"judgesmith.{module}"), attribute
        )
        if self.name is not None:
            self._part(registry, self.name)
            return
        # Optimizers have those of other libraries, too.
        every = getattr(registry, "every", registry.parts)
        parts = every().items()
        refused: Mapping[str, str] = getattr(registry, "refused", dict)()
        if self.as_json:
            print_json(
                {
                    "parts": [_facts(*item) for item in parts],
                    "refused": refused,
                    "broken": registry.broken,
                }
            )
            return
        _print_table(
            ("name", "what it is", "paper"),
            [
                *((name, part.about, _paper(part)) for name, part in parts),
                *((name, f"no: {reason}", "") for name, reason in refused.items()),
            ],
        )
        for name, problem in registry.broken.items():
            err.print(
                f"the plug-in {name} is left out: {problem}",
                markup=False,
                style="red",
                soft_wrap=True,
            )

    def _part(self, registry: Registry[Any], name: str) -> None:
        """Print one part in detail; name: its own, or an alias."""
        part = registry.get(name)
        for own, one in registry.parts().items():
            if one is part:
                name = own
                break
        facts = _facts(name, part)
        if self.as_json:
            print_json(facts)
            return
        del facts["options"]
        _print_facts(facts)
        _print_options(getattr(part, "Options", Options))

    def _commands(self) -> None:
        from judgesmith.cli.main import EXIT_CODES, app

        group: Any = typer.main.get_command(app)
        said = group.sentences(None)
        if self.as_json:
            print_json({"commands": said, "exit_codes": EXIT_CODES})
            return
        _print_table(("command", "what it does"), list(said.items()))
        out.print()
        codes = [(str(code), meaning) for code, meaning in EXIT_CODES.items()]
        _print_table(("exit code", "meaning"), codes)

    def _schemas(self) -> None:
        from judgesmith.cli.outputs import OUTPUTS, schema

        if self.name is not None:
            print_json(schema(self.name))
            return
        about = {name: output.__doc__ or "" for name, output in OUTPUTS.items()}
        if self.as_json:
            print_json({"schemas": about})
        else:
            _print_table(("output of", "what it is"), list(about.items()))

    def _options(self) -> None:
        from judgesmith.cli.main import command_model

        model = command_model((self.name or "").split())
        if model is None:
            raise OptionError(
                f"{self.name or ''!r} is not a command; `judgesmith list commands` lists them"
            )
        catalogue = model.catalogue({})
        owners = () if catalogue is None else catalogue.owners
        if self.as_json:
            own = [
                {"option": option, "help": help}
                for option, help in shown(model, every=True)
            ]
            others = {owner.where: _listed(owner.options) for owner in owners}
            print_json({"command": own, "options": others})
            return
        for text in paragraphs(model):
            out.print(text, markup=False, highlight=False)
            out.print()
        _print_table((), shown(model, every=True))
        for owner in owners:
            out.print(f"\n[bold]{escape(owner.where)}[/bold]")
            _print_options(owner.options)

    def _presets(self) -> None:
        from judgesmith import presets

        if self.name is not None:
            if self.as_json:
                print_json(presets.read(self.name))
            else:
                out.print(
                    presets.text(self.name).rstrip(),
                    markup=False,
                    highlight=False,
                    soft_wrap=True,
                )
            return
        shown = [
            {"name": n, "kind": presets.kind(n), "about": presets.about(n)}
            for n in presets.names()
        ]
        if self.as_json:
            print_json({"presets": shown})
        else:
            _print_table(
                ("name", "kind", "what it is"), [list(one.values()) for one in shown]
            )

    def _aspects(self) -> None:
        from judgesmith.programs.aspects import aspects

        library = aspects()
        task = None if self.name is None else _task(library, self.name)
        if self.name is not None and task is None:
            aspect = _aspect(library, self.name)
            data = {
                "aspect": _aspect_data(aspect),
                "task": _task_data(library.tasks[aspect.task]),
            }
            print_json(data) if self.as_json else _print_facts(data["aspect"])
            return
        tasks = list(library.tasks.values()) if task is None else [task]
        if self.as_json:
            print_json({"tasks": list(map(_with_aspects, tasks))})
            return
        for one in tasks:
            out.print(f"[bold]{escape(one.name)}[/bold]: {escape(one.description)}")
            marks = {True: " (more is worse)", False: ""}
            _print_table(
                (),
                [
                    (a.name, a.definition + marks[a.negative])
                    for a in one.aspects.values()
                ],
            )
        out.print(
            "`judgesmith list aspects TASK/ASPECT` prints one in full.", style="dim"
        )

    def _data(self) -> None:
        from judgesmith.datasets.benchmarks.catalog import benchmark, list_benchmarks

        if self.name is not None:
            card = benchmark(self.name)
            here = set_data(card)
            facts = card.to_json() | {
                key: here[key] for key in ("where", "path", "rows_here")
            }
            print_json(facts) if self.as_json else _print_facts(
                facts | {"where": PLACES[here["where"]]}
            )
            return
        sets = list(map(set_data, list_benchmarks()))
        if self.as_json:
            print_json({"sets": sets})
            return
        lines = []
        for item in sets:
            rows = rows_of(item).replace(" of ", "/")
            lines.append((item["name"], item["task"], rows, item["where"]))
        _print_table(("name", "task", "rows", "where"), lines)
        places = {item["where"] for item in sets}
        for place, meaning in PLACES.items():
            if place in places:
                out.print(f"{place}: {meaning}", markup=False, style="dim")
        out.print(
            "`judgesmith list data NAME` prints a set's card, with its licence.",
            style="dim",
        )

    def _models(self) -> None:
        from judgesmith.programs.models import files
        from judgesmith.programs.models.ollama import list_ollama
        from judgesmith.programs.models.provider import providers

        models: list[dict[str, Any]] = [
            {
                "name": f"local/{m.name}",
                "size_mb": round(m.bytes / 1e6),
                "licence": m.licence,
                "installed": files.installed(m.name),
                "about": m.title,
            }
            for m in files.CATALOG.values()
        ]
        problem = None
        try:
            models += [
                {
                    "name": f"ollama_chat/{name}",
                    "size_mb": round(size / 1e6),
                    "licence": "",
                    "installed": True,
                    "about": "",
                }
                for name, size in list_ollama().items()
            ]
        except ModelError as error:
            problem = str(error)
        ways = [_provider(one) for one in providers.parts().values()]
        if self.as_json:
            print_json({"models": models, "ollama_problem": problem, "providers": ways})
            return
        here = {True: "yes", False: "no"}
        _print_table(
            ("name", "size", "licence", "here", "what it is"),
            [
                (
                    m["name"],
                    f"{m['size_mb']:,} MB",
                    m["licence"],
                    here[m["installed"]],
                    m["about"],
                )
                for m in models
            ],
        )
        if problem:
            out.print(f"Ollama: {problem}", style="dim", markup=False)
        out.print("Fetch one with `judgesmith get NAME`. Names of models begin with:\n")
        _print_table((), [(", ".join(way["names"]), _said(way)) for way in ways])


def _provider(provider: type[Provider]) -> dict[str, Any]:
    """Return how the names of a provider's models begin, and what these can do."""
    return {
        "names": [provider.name, *provider.aliases],
        "about": provider.about,
        "probed": provider.probed,
        "grammars": provider.grammars,
        "batches": list(provider.batches),
    }


def _said(way: Mapping[str, Any]) -> str:
    """Return what the models of a provider are, and what sets them apart."""
    said = [way["about"]]
    if not way["probed"]:
        said.append("No log-probabilities.")
    if way["grammars"]:
        said.append("Grammars.")
    if way["batches"]:
        said.append(f"Batches: {', '.join(way['batches'])}.")
    return " ".join(said)


def _print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table.

    columns: titles; without any, the first is a name and the others are text.
    """
    table = Table(columns or ("name", ""), header=bool(columns))
    for row in rows:
        table.add(*row)
    table.show(out)


def _print_facts(facts: Mapping[str, Any]) -> None:
    """Print names beside values, each line of a value below the one before."""
    rows = []
    for name, value in facts.items():
        first, *more = (_text(value) or "–").splitlines()
        rows += [(name.replace("_", " "), first), *(("", line) for line in more)]
    _print_table((), rows)


def _with_aspects(task: Any) -> dict[str, Any]:
    """Return a task with its aspects, as JSON."""
    return _task_data(task) | {
        "aspects": [_aspect_data(aspect) for aspect in task.aspects.values()]
    }


def _text(value: Any) -> str:
    """Return a value of JSON as a reader wants it."""
    if isinstance(value, Mapping):
        return "\n".join(f"{name}: {_text(one)}" for name, one in value.items())
    if isinstance(value, list | tuple) and any(isinstance(one, str) for one in value):
        return "\n".join(map(_text, value))
    if isinstance(value, list | tuple):
        return " to ".join("no end" if one is None else _text(one) for one in value)
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _print_options(options: type[Options]) -> None:
    _print_table(
        ("option", "type", "default", "what it does"),
        [(one.name, one.type, one.default, one.help) for one in describe(options)],
    )


def _listed(options: type[Options]) -> list[dict[str, Any]]:
    return [
        {"name": o.name, "type": o.type, "default": default, "help": o.help}
        for o, default in zip(
            describe(options), options().settings().values(), strict=True
        )
    ]


def _paper(part: Any) -> str:
    """Return the paper of a part; for a stand-in, the part that it replaces."""
    stands_for = getattr(part, "stands_for", "")
    if stands_for:
        return f"ours, instead of {stands_for}"
    return getattr(part, "paper", "")


def _facts(name: str, part: Any) -> dict[str, Any]:
    return {
        "name": name,
        "about": part.about,
        "paper": _paper(part),
        "aliases": list(getattr(part, "aliases", ())),
        "options": _listed(getattr(part, "Options", Options)),
    }


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
        raise OptionError(
            f"{error}. The tasks are: {', '.join(library.tasks)}"
        ) from None


def _task_data(task: Task) -> dict[str, Any]:
    return task.model_dump(mode="json", exclude={"aspects"})


def _aspect_data(aspect: Aspect) -> dict[str, Any]:
    return aspect.model_dump(mode="json") | {"scoring": aspect.scoring}


def set_data(card: BenchmarkCard) -> dict[str, Any]:
    """Return the row of a data set; `rows_here` is None if it is not on this machine."""
    from judgesmith.datasets.benchmarks.catalog import locate
    from judgesmith.datasets.loading import count_rows

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
    """Return the number of rows of a set as text; with the number on this machine, if that differs."""
    part = item["rows_here"] not in (None, item["rows"])
    return f"{item['rows_here']:,} of {item['rows']:,}" if part else f"{item['rows']:,}"


def licence_of(card: BenchmarkCard) -> str:
    """Return licence, restriction and note of a set."""
    mark = f" [{card.restriction.upper()}]" if card.restriction else ""
    return f"{card.licence}{mark}. {card.licence_note}"
