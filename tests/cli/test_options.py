"""Options of commands and of parts: each is taken where it does something, and refused where it does not."""

import json
import re
import shlex
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, cast

import pytest
import typer
from json_lines import Rows as RowsFile

from judgesmith.cli import main as command_line
from judgesmith.cli.commands import Command, Group, Rows, argument, flag
from judgesmith.cli.main import command_model
from judgesmith.compiling.run import CompileRun, RunOptions, Setup
from judgesmith.errors import OptionError
from judgesmith.evaluating.options import EvaluateOptions
from judgesmith.experiments.studies.config import StudyOptions
from judgesmith.optimizers.options import Compiler
from judgesmith.optimizers.registry import build_optimizer, optimizers
from judgesmith.parts import Options
from judgesmith.programs.registry import methods
from judgesmith.rooms.discerning.options import DiscernOptions
from judgesmith.running.settings import ModelOptions, choices_of


def setup(kind: str, name: str) -> Setup:
    return Setup(method=name) if kind == "method" else Setup(optimizer=name)


#: What an option needs beside it.
BESIDE = {"combine": {"variant": "fine"}}
TRIED: list[Any] = [
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
    [3, 6],
    ["fine"],
    [0.1, 0.2, 0.3, 0.4, 0.5],
    ["openai/other"],
    ["tags", "bare"],
    ["words", "percent"],
]


def another(options: type[Options], name: str) -> Any:
    """A value of an option that is not its default."""
    for value in [*choices_of(options, name), *TRIED]:
        try:
            given = str(value) if not isinstance(value, list) else value
            made = getattr(options(**{name: given}, **BESIDE.get(name, {})), name)
        except Exception:
            continue
        if made != options.model_fields[name].default:
            return value
    raise AssertionError(f"no value but the default was found for {name}")


@pytest.mark.parametrize("kind", ["method", "optimizer"])
def test_an_option_reaches_its_part_and_no_other(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parts: dict[str, Any] = dict((methods if kind == "method" else optimizers).parts())
    for name, part in parts.items():
        for option, field in part.Options.model_fields.items():
            assert part.about
            assert field.description
            value = another(part.Options, option)
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            found = (
                setup(kind, name)
                .catalogue()
                .resolve({f"{kind}.{option}": text, **BESIDE.get(option, {})})
            )
            assert (
                part.Options(**found[kind]).settings()[option]
                != part.Options().settings()[option]
            ), option
            for other in parts:
                if option not in parts[other].Options.model_fields:
                    with pytest.raises(OptionError, match="has no effect with"):
                        setup(kind, other).catalogue().resolve(
                            {f"{kind}.{option}": "1"}
                        )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("optimizer.racing", "run.yaml: optimizer.racing=… has no effect with"),
        ("method.varient", "run.yaml: method.varient: there is no option of that name"),
    ],
)
def test_a_message_repeats_an_option_as_it_was_written(name: str, message: str) -> None:
    chosen = Setup(method="active-critic", optimizer="gepa")
    with pytest.raises(OptionError, match=f"^{message}"):
        chosen.catalogue().resolve({name: "1"}, source="run.yaml")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["--method", "g-eval", "--variant", "fine"],
            "variant=… has no effect with --method g-eval",
        ),
        (["--method", "direct", "--variant=fine"], "it is an option of active-critic"),
        (["--levels", "5"], "it is an option of decisions, pairwise-direct"),
        (["--optimizer", "gepa", "--racing"], "racing=… has no effect with"),
        (
            ["--method", "g-eval", "--temperature", "0.5"],
            "use method.temperature or lm.temperature",
        ),
        (["--varaint", "fine"], "Possible options: --variant, --variants"),
        (["--max-demos"], "requires an argument"),
        (["--scale", "1,5", "x"], "it takes two values, --scale LOW HIGH"),
        (
            ["--candidates", "-1"],
            "candidates: Input should be greater than or equal to 0; got '-1'",
        ),
    ],
)
def test_what_would_do_nothing_is_an_error(
    arguments: list[str], told: str, cli: Any, rows_file: RowsFile
) -> None:
    done = cli(
        "compile",
        rows_file(48),
        "--as",
        "summarization/fluency",
        "--dry-run",
        *arguments,
    )
    assert done.code == 2, done.out
    assert told.casefold() in done.err.casefold()
    assert len(done.err.splitlines()) == 1


def test_spellings_of_one_option_mean_the_same(
    cli: Any, rows_file: RowsFile, tmp_path: Path
) -> None:
    def planned(*arguments: object) -> Any:
        return cli("compile", *arguments, "--dry-run", "--json").told

    rows = rows_file(48)
    config = tmp_path / "run.yaml"
    config.write_text(
        "variant: fine\noptimizer: optuna\ncandidates: 3\nvariants: [vanilla]\nracing: true\nseed: 7\n"
    )
    told = planned(rows, "--config", config)
    for arguments in (
        [
            "--variant",
            "fine",
            "--optimizer",
            "optuna",
            "--candidates",
            3,
            "--variants",
            "vanilla",
            "--racing",
        ],
        [
            "--method.variant=fine",
            "--optimizer=optuna",
            "--optimizer.candidates=3",
            "--variants=vanilla",
            "--racing",
        ],
    ):
        assert planned(rows, *arguments, "--seed", 7) == told
    assert told["method"]["variant"] == "fine"
    assert told["optimizer"]["variants"] == ["vanilla"]
    over = planned(rows, "--config", config, "--variant", "coarse", "--no-racing")
    assert over["method"]["variant"] == "coarse"
    assert over["optimizer"] == told["optimizer"] | {"racing": False}
    several = planned(
        rows, "--optimizer", "optuna", "--variants", "fine", "--variants", "vanilla"
    )
    assert several["optimizer"]["variants"] == ["fine", "vanilla"]


@pytest.mark.parametrize("command", command_line.FRONT)
def test_the_help_of_a_command_is_one_screen_with_an_example(
    command: str, cli: Any
) -> None:
    lines = cli(command, "--help").said.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    options = [line for line in lines if re.match(r"-", line)]
    assert len(options) - 1 <= 12  # the last line says where the others are
    assert f"judgesmith list options {command}" in lines[-2]
    assert lines[lines.index("Example:") + 1].startswith(f"  judgesmith {command}")


@pytest.mark.parametrize("command", [*command_line.ORDER, "discern", "watch"])
def test_the_example_of_a_command_is_one_that_it_takes(command: str) -> None:
    model = command_model(command.split())
    assert model is not None
    _, *words = shlex.split(model.example) or ["judgesmith", *command.split()]
    made: Any = typer.main.get_command(command_line.app)
    context = made.make_context("judgesmith", words)
    name, found, rest = made.resolve_command(context, words)
    if words[1:]:
        assert name == command
        found.make_context(name, rest, parent=context)


def test_every_option_is_listed_in_full(cli: Any) -> None:
    told = cli("list", "options", "score", "--json").json
    written = " ".join(one["option"] for one in told["command"])
    for option in ("--judge", "--batch", "--on ray", "--no-cache", "--config"):
        assert option.replace("--no-", "--[no-]") in written
    assert "It contains the human rating for 90 %" in " ".join(
        cli("list", "options", "score").out.split()
    )


def test_every_command_takes_its_options_from_a_file(
    cli: Any, rows_file: RowsFile, judge_file: Path, tmp_path: Path
) -> None:
    rows = rows_file(4)
    config = tmp_path / "run.yaml"
    config.write_text(f"judge: {judge_file}\nrows: {rows}\ndry_run: true\njson: true\n")
    planned = cli("score", "--config", config).json
    assert (
        planned == cli("score", rows, "--judge", judge_file, "--dry-run", "--json").json
    )
    config.write_text("dry_run: true\n")
    cli("score", "--config", config, rows).refused_at_once(
        f"--config {config} needs judge"
    )
    config.write_text("jugde: x\n")
    cli("score", "--config", config, rows).refused_at_once("jugde")


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("evaluate", EvaluateOptions),
        ("discern", DiscernOptions),
        ("study", StudyOptions),
        ("compile", RunOptions),
    ],
)
def test_other_options_of_a_command_are_listed(
    command: str, options: type[Options], cli: Any
) -> None:
    told = cli("list", "options", command, "--json").json["options"]
    assert list(options.model_fields) in [
        [option["name"] for option in each] for each in told.values()
    ]
    assert all(
        option["help"] and option["type"] for each in told.values() for option in each
    )
    words = cli("list", "options", command).out.split()
    assert set(options.model_fields) <= set(words)
    assert "Annotated" not in words
    assert "'scor' is not a command" in cli("list", "options", "scor").err


@pytest.mark.parametrize("command", ["evaluate", "discern"])
def test_options_of_a_command_are_its_own_and_checked(
    command: str, cli: Any, tmp_path: Path
) -> None:
    beside = ("a.jsonl", "b.jsonl")
    assert "Possible options: --rounds" in cli(command, *beside, "--round", 1).err
    assert (
        "rounds: Input should be greater than or equal to 0; got '-1'"
        in cli(command, *beside, "--rounds", -1).err
    )
    file = tmp_path / "more.yaml"
    file.write_text("rounds: many\n")
    assert (
        "rounds: Input should be a valid integer"
        in cli(command, *beside, "--config", file).err
    )
    file.write_text("round: 1\n")
    found = cli(command, *beside, "--config", file).err
    assert (
        f"--config {file}: round: there is no option of that name (did you mean 'rounds'?)"
        in found
    )


def test_a_teacher_that_would_do_nothing_is_refused(
    cli: Any, rows_file: RowsFile
) -> None:
    given, model = (
        (
            "compile",
            rows_file(48),
            "--lm",
            "openai/x",
            "--teacher",
            "openai/gpt-4o",
            "--dry-run",
        ),
        object(),
    )
    for optimizer in ("zero-shot", "labeled-few-shot"):
        cli(*given, "--optimizer", optimizer).refused(
            f"teacher=… has no effect with --optimizer {optimizer}"
        )
        with pytest.raises(
            OptionError, match=f"teacher does nothing with optimizer {optimizer}"
        ):
            Compiler(build_optimizer(optimizer), teacher=cast(Any, model))
    assert cli(*given).code == 0


def test_a_run_of_its_own_defaults_is_the_default_run() -> None:
    made = CompileRun(labels=Path("x.jsonl"))
    assert (made.run, made.model) == (RunOptions(), ModelOptions())
    json.dumps(made.run.settings())


# -- commands -----------------------------------------------------------------------------------------------------


def test_the_help_shows_eight_commands_and_four_beside_them_on_one_line_each(
    cli: Any,
) -> None:
    lines = cli("--help").out.splitlines()
    start = lines.index("Commands:")
    between = lines.index("Beside them:")
    end = between + 1 + len(command_line.BESIDE)
    for shown, names in (
        (lines[start + 1 : between - 1], command_line.FRONT),
        (lines[between + 1 : end], command_line.BESIDE),
    ):
        assert tuple(line.split()[0] for line in shown) == names
    assert len(command_line.FRONT) == 8
    assert lines[end] == ""
    assert "did you mean 'compile'" in cli("compil").err


def test_all_commands_are_listed_with_the_exit_codes(cli: Any) -> None:
    told = cli("list", "commands", "--json").json
    named = {name for name in points() if "." not in name}
    assert set(told["commands"]) == named - {"evaluate"}  # an old name
    assert list(told["commands"])[:8] == list(command_line.FRONT)
    assert set(told["exit_codes"]) == {str(code) for code in command_line.EXIT_CODES}
    assert "come again" in cli("list", "commands").out
    for name, sentence in told["commands"].items():
        assert sentence.endswith("."), name


def points() -> set[str]:
    return {point.name for point in entry_points(group=command_line.GROUP)}


class Weigh(Command, Rows):
    """Weigh texts."""

    rows: Path = argument(..., "Rows.")
    grams: int = flag(1, "At least.", ge=1)
    names: list[str] = flag([], "Names.", "--name")
    exact: bool = flag(True, "To the gram.")

    def run(self) -> int:
        typer.echo(f"{self.rows} {self.grams} {self.names} {self.exact} {self.roles()}")
        return self.grams


def test_a_command_of_another_package(
    cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Point(EntryPoint):
        def load(self) -> Any:
            if self.name == "broken":
                raise ImportError("no module named scales")
            return {"weigh": Weigh, "scales": Group("Scales."), "scales.weigh": Weigh}[
                self.name
            ]

    names = ("weigh", "broken", "scales", "scales.weigh")
    points = [Point(name, "elsewhere:Weigh", command_line.GROUP) for name in names]
    monkeypatch.setattr(command_line, "entry_points", lambda group: points)
    done = cli(
        "weigh",
        "r.csv",
        "--grams",
        3,
        "--name",
        "a",
        "--name",
        "b",
        "--no-exact",
        "--columns",
        "output=o",
    )
    assert (done.code, done.out) == (3, "r.csv 3 ['a', 'b'] False {'output': 'o'}\n")
    assert cli("scales", "weigh", "r.csv").out == "r.csv 1 [] True {}\n"
    assert "Weigh texts." in cli("--help").out
    assert "Invalid value for '--grams'" in cli("weigh", "r.csv", "--grams", 0).err
    assert cli("broken").code == 2
    assert command_model(["scales"]) is Weigh
