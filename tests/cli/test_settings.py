"""Options of parts on the command line: every one is taken where it does something, and refused where it does not."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from judgesmith.cli.settings import complete
from judgesmith.compiling.run import METHOD, OPTIMIZER, CompileRun, RunOptions, Setup
from judgesmith.datasets.perturbations.registry import perturbations
from judgesmith.discerning.options import DiscernOptions
from judgesmith.errors import OptionError
from judgesmith.evaluating.options import EvaluateOptions
from judgesmith.experiments.studies.config import StudyOptions
from judgesmith.optimizers.compiling import Compiler
from judgesmith.optimizers.registry import build_optimizer, optimizers
from judgesmith.parts import Options
from judgesmith.programs.registry import judges, metrics
from judgesmith.running.settings import ModelOptions, choices_of

Rows = Callable[..., Path]

PARTS = [("method", name, part) for name, part in judges.parts().items()] + [
    ("optimizer", name, part) for name, part in optimizers.parts().items()
]
OPTIONS = [(kind, name, option) for kind, name, part in PARTS for option in part.Options.model_fields]


def setup(kind: str, name: str) -> Setup:
    return Setup(method=name) if kind == "method" else Setup(optimizer=name)


#: What an option needs beside it.
BESIDE = {"combine": {"variant": "fine"}}


def another(options: type[Options], name: str) -> Any:
    """A value of an option that is not its default. Raises AssertionError where none is found."""
    default = options.model_fields[name].default
    tried: list[Any] = [
        "true",
        "false",
        3,
        2,
        0.25,
        "yes",
        "openai/other",
        "fine",
        "said",
        "expected",
        "before",
        "mean",
    ]
    tried += [
        "mean",
        "summarization",
        "none",
        "gold",
        "yes-no",
        "both",
        "letters",
        "numbers",
        "words",
        "other",
        "study.db",
        [0.5],
        ["fine"],
    ]
    tried += [[0.1, 0.2, 0.3, 0.4, 0.5], ["openai/other"], ["tags", "bare"]]
    for value in [*choices_of(options, name), *tried]:
        try:
            given = str(value) if not isinstance(value, list) else value
            made = getattr(options(**{name: given}, **BESIDE.get(name, {})), name)
        except Exception:
            continue
        if made != default:
            return value
    raise AssertionError(f"no value but the default was found for {name}")


@pytest.mark.parametrize(("kind", "name", "part"), PARTS, ids=lambda v: v if isinstance(v, str) else "")
def test_every_option_has_a_help(kind: str, name: str, part: Any) -> None:
    assert part.about
    assert all(field.description for field in part.Options.model_fields.values())


@pytest.mark.parametrize("options", [RunOptions, ModelOptions])
def test_every_option_of_a_run_has_a_help(options: type[Options]) -> None:
    assert all(field.description for field in options.model_fields.values())


@pytest.mark.parametrize(("kind", "name", "option"), OPTIONS, ids=lambda v: str(v))
def test_an_option_reaches_the_part_that_has_it(
    kind: str, name: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    part = (judges if kind == "method" else optimizers).get(name)
    value = another(part.Options, option)
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    given = {f"{kind}.{option}": text, **BESIDE.get(option, {})}
    found = setup(kind, name).resolve(given.items())
    chosen = part.Options(**found[kind])
    assert chosen.settings()[option] != part.Options().settings()[option]


@pytest.mark.parametrize(("kind", "name", "option"), OPTIONS, ids=lambda v: str(v))
def test_an_option_is_refused_by_every_part_that_lacks_it(kind: str, name: str, option: str) -> None:
    registry = judges if kind == "method" else optimizers
    for other, part in registry.parts().items():
        if option not in part.Options.model_fields:
            with pytest.raises(OptionError, match="does nothing with"):
                setup(kind, other).resolve([(f"{kind}.{option}", "1")])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--method", "g-eval", "--variant", "fine"], "variant=… does nothing with --method g-eval"),
        (["--method", "direct", "--variant=fine"], "it is an option of active-critic"),
        (["--method", "direct", "--explain", "before"], "explain=… does nothing with --method direct"),
        (["--references", "5"], "it is an option of pairwise-direct"),
        (["--method", "g-eval", "--writer", "openai/other"], "it is an option of pairwise-direct"),
        (["--method", "pairs", "--supervisor", "none"], "it is an option of openlgauge"),
        (["--method", "direct", "--without", "task"], "does nothing with --method direct"),
        (["--method", "direct", "--keep", "2"], "keep=… does nothing with --method direct"),
        (["--optimizer", "gepa", "--racing"], "racing=… does nothing with"),
        (["--optimizer", "none", "--demos", "3"], "demos=… does nothing with"),
        (["--method", "g-eval", "--set", "plots=p"], "plots=… does nothing with --optimizer random-search"),
        (["--method", "g-eval", "--set", "temperature=0.5"], "lm.temperature"),
        (["--set", "varaint=fine"], "did you mean 'variant'?"),
        (["--varaint", "fine"], "did you mean '--variant'?"),
        (["--set", "variant"], "is not of the form NAME=VALUE"),
        (["--max-demos"], "requires an argument"),
    ],
)
def test_what_would_do_nothing_is_an_error(arguments: list[str], told: str, cli: Any, rows_file: Rows) -> None:
    done = cli("compile", rows_file(48), "--as", "summarization/fluency", "--dry-run", *arguments)
    assert done.code == 2, done.out
    assert told in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("command", ["new", "compile"])
def test_judges_without_labels_refuse_the_same(command: str, cli: Any, rows_file: Rows, tmp_path: Path) -> None:
    rows = [rows_file(48)] if command == "compile" else []
    done = cli(command, *rows, "--method", "direct", "--as", "fluency", "--variant", "fine", "-o", tmp_path / "j.json")
    assert done.code == 2
    assert "does nothing with --method direct" in done.err


def planned(cli: Any, *arguments: object) -> Any:
    done = cli("compile", *arguments, "--dry-run", "--json")
    assert done.code == 0, done.err
    return done.json


def test_spellings_of_one_setting_mean_the_same(cli: Any, rows_file: Rows, tmp_path: Path) -> None:
    rows = rows_file(48)
    config = tmp_path / "run.yaml"
    config.write_text("variant: fine\noptimizer: optuna\ncandidates: 3\nvariants: [vanilla]\nracing: true\nseed: 7\n")
    spelled = [
        ["--variant", "fine", "--optimizer", "optuna", "--candidates", 3, "--try-variant", "vanilla", "--racing"],
        ["--variant=fine", "--optimizer=optuna", "--candidates=3", "--variants=vanilla", "--racing=yes"],
        ["--set", "variant=fine", "--optimizer", "optuna", "--set", "optimizer.candidates=3", "--set",
         "variants=vanilla", "--set", "racing=true"],
    ]  # fmt: skip
    found = [planned(cli, *arguments[:1], *arguments[1:], rows, "--seed", 7) for arguments in spelled]
    found.append(planned(cli, rows, "--config", config))
    assert all(one == found[0] for one in found)
    assert found[0]["method"]["variant"] == "fine"
    assert found[0]["optimizer"]["variants"] == ["vanilla"]
    over = planned(cli, rows, "--config", config, "--variant", "coarse")
    assert over["method"]["variant"] == "coarse"
    assert over["optimizer"] == found[0]["optimizer"]


def test_repeated_options_collect_and_switches_can_be_denied() -> None:
    found = Setup(optimizer="optuna").resolve(
        [("racing", "yes")],
        [("racing", "no"), ("try_variant", "fine"), ("try_variant", "vanilla"), ("no_cache", "yes")],
    )
    assert found["optimizer"] == {"racing": None, "variants": ("fine", "vanilla")}
    assert found["lm"] == {"cache": False}


def test_ablations_of_the_paper_are_options_of_the_method() -> None:
    found = Setup().resolve([("variant", "fine"), ("without", "task, os-e")])
    assert found["method"] == {"variant": "fine", "use_task": False, "combine": "mean"}
    with pytest.raises(OptionError, match="not one of task, criteria"):
        Setup().resolve([("without", "tsk")])


def test_a_negative_number_is_a_value(cli: Any, rows_file: Rows) -> None:
    done = cli("compile", rows_file(48), "--candidates", -1, "--dry-run")
    assert done.code == 2
    assert "candidates" in done.err
    assert "-1" in done.err


@pytest.mark.parametrize("command", ["compile", "evaluate", "discern", "study labels"])
def test_the_help_is_short(command: str, cli: Any) -> None:
    done = cli(*command.split(), "--help")
    assert done.code == 0
    options = [line for line in done.out.splitlines() if line.lstrip("│ *").startswith("--")]
    assert 10 <= len(options) <= 18  # --help among them


@pytest.mark.parametrize(
    ("command", "options"),
    [("evaluate", EvaluateOptions), ("discern", DiscernOptions), ("study", StudyOptions), ("compile", RunOptions)],
)
def test_other_options_of_a_command_are_listed(command: str, options: type[Options], cli: Any) -> None:
    told = cli("options", command, "--json").json["options"]
    assert list(options.model_fields) in [[option["name"] for option in each] for each in told.values()]
    assert all(option["help"] and option["type"] for each in told.values() for option in each)
    assert set(options.model_fields) <= set(cli("options", command).out.split())


@pytest.mark.parametrize("command", ["score", "nonsense"])
def test_a_command_without_settings_lists_none(command: str, cli: Any) -> None:
    done = cli("options", command)
    assert done.code == 2
    assert f"'{command}' is not a command that takes --set" in done.err


def test_an_option_that_moved_names_its_new_place(cli: Any) -> None:
    done = cli("evaluate", "rows.jsonl", "--spans", "bench/mqm")
    assert done.code == 2
    assert "judgesmith spans ROWS TRUTH" in done.err


@pytest.mark.parametrize("command", ["evaluate", "discern"])
def test_settings_of_a_command_are_its_own_and_checked(command: str, cli: Any, tmp_path: Path) -> None:
    beside = ("a.jsonl", "b.jsonl")
    assert "no option of that name (did you mean 'rounds'?)" in cli(command, *beside, "--set", "round=1").err
    assert "rounds: Input should be greater than or equal to 0; got '-1'" in cli(command, *beside, "--rounds", -1).err
    file = tmp_path / "more.yaml"
    file.write_text("rounds: many\n")
    assert "rounds: Input should be a valid integer" in cli(command, *beside, "--config", file).err


@pytest.mark.parametrize(
    ("command", "registry"),
    [("methods", judges), ("optimizers", optimizers), ("perturbations", perturbations), ("metrics", metrics)],
)
def test_parts_are_listed(command: str, registry: Any, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.broken, "shaky", "ImportError: no module named shaky")
    told = cli(command, "--json").json
    assert [part["name"] for part in told["parts"]] == list(registry.names())
    assert told["broken"] == {"shaky": "ImportError: no module named shaky"}
    assert "shaky" in cli(command).err
    for name, part in registry.parts().items():
        one = cli(command, name, "--json").json
        assert [option["name"] for option in one["options"]] == list(getattr(part, "Options", Options).model_fields)
        assert all(option["help"] and option["type"] for option in one["options"])
        assert cli(command, name).code == 0
    unknown = cli(command, "nonsense")
    assert unknown.code == 2
    assert "unknown" in unknown.err


@pytest.mark.parametrize("optimizer", ["none", "labeled-few-shot", "knn"])
def test_a_teacher_that_would_do_nothing_is_refused(optimizer: str, cli: Any, rows_file: Rows) -> None:
    teacher = ("--set", "teacher=openai/gpt-4o")
    done = cli("compile", rows_file(48), "--lm", "openai/x", "--optimizer", optimizer, *teacher, "--dry-run")
    assert done.code == 2
    assert f"teacher=… does nothing with --optimizer {optimizer}" in done.err
    model: Any = object()
    with pytest.raises(OptionError, match=f"teacher does nothing with optimizer {optimizer}"):
        Compiler(search=build_optimizer(optimizer), teacher=model)
    assert cli("compile", rows_file(48), "--lm", "openai/x", *teacher, "--dry-run").code == 0


def test_a_shell_completes_names_and_values() -> None:
    command = SimpleNamespace(catalogue=lambda given: Setup(given["method"], given["optimizer"]).catalogue())
    context: Any = SimpleNamespace(command=command, params={"method": METHOD, "optimizer": OPTIMIZER})
    names = [text for text, _ in complete(context, "var")]
    assert names == ["variant="]
    values = [text for text, _ in complete(context, "variant=")]
    assert values == ["variant=vanilla", "variant=coarse", "variant=fine"]


def test_a_run_of_its_own_defaults_is_the_default_run() -> None:
    made = CompileRun.of(Setup(), Setup().resolve(), labels=Path("x.jsonl"))
    assert (made.run, made.model) == (RunOptions(), ModelOptions())
    json.dumps(made.run.settings())
