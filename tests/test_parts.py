"""Parts declare themselves: options, registries, and what becomes of plug-ins that are broken."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesmith import parts
from judgesmith.errors import OptionError
from judgesmith.parts import (
    Options,
    Registry,
    describe,
    from_text,
    option,
    read_options,
)


class Shown(Options):
    """Options of every type."""

    reading: Literal["said", "expected"] = option("said", "How the number is read.")
    samples: int = option(4, "How many answers.", ge=1, le=64)
    heat: float | None = option(None, "Temperature.", ge=0)
    plain: bool = option(False, "No explanation.")
    names: tuple[str, ...] = option((), "Names of criteria.", max_length=3)
    file: Path | None = option(None, "A file.")


@dataclass(frozen=True)
class Set:
    """A part that is an object."""

    name: str
    about: str = "a set"


class Plain:
    name = "plain"
    about = "a plain part"
    aliases = ("simple",)
    Options = Shown


class Plugin:
    name = "mine"
    about = "from another package"


@pytest.fixture
def things() -> Registry[Any]:
    return Registry("thing", packages=(), group="judgesmith.things")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """installed(mine="package:Class"): these are the entry points that other packages declare."""

    def declare(**points: str) -> None:
        made = [
            EntryPoint(name, value, "judgesmith.things")
            for name, value in points.items()
        ]
        monkeypatch.setattr(
            parts,
            "entry_points",
            lambda group: made if group == "judgesmith.things" else [],
        )

    return declare


# -- registries


def test_parts_are_found_by_name_and_alias(things: Registry[Any]) -> None:
    assert things.register(Plain) is Plain
    assert things.get("plain") is things.get("simple") is Plain
    assert things.names() == ("plain",)  # an alias is no part of its own
    assert things.parts() == {"plain": Plain}
    assert "plain" in things
    assert "simple" in things
    assert "plane" not in things


def test_an_unknown_name_is_answered_with_the_nearest_and_all(
    things: Registry[Any],
) -> None:
    things.register(Plain)
    things.register(Plugin)
    with pytest.raises(
        OptionError,
        match=r"thing 'plane' is unknown \(did you mean 'plain'\?\); known: mine, plain$",
    ):
        things.get("plane")
    with pytest.raises(
        OptionError, match=r"thing 'qqqq' is unknown; known: mine, plain$"
    ):
        things.get("qqqq")


def test_a_name_or_alias_is_taken_once_and_by_a_class_defined_anew(
    things: Registry[Any],
) -> None:
    things.register(Plain)
    for clash in (
        {"name": "plain"},
        {"name": "simple"},
        {"name": "new", "aliases": ("other", "plain")},
    ):
        with pytest.raises(OptionError, match=r"exists already: .*Plain"):
            things.register(type("Other", (), {"about": "x", **clash}))
        assert things.names() == ("plain",)
    anew = type("Plain", (), {"name": "plain", "about": "x", "__module__": __name__})
    things.register(anew)
    assert things.get("plain") is anew


def test_what_declares_too_little_is_refused(things: Registry[Any]) -> None:
    class Bare(Options):
        given: int = option(1, "How often.")
        unexplained: int = 1

    for wrong, reason in (
        ({"name": "silent"}, "it needs `name` and `about`"),
        ({"about": "x"}, "it needs `name` and `about`"),
        ({"name": 1, "about": "x"}, "it needs `name` and `about`"),
        (
            {"name": "bare", "about": "x", "Options": Bare},
            "option 'unexplained' has no help",
        ),
    ):
        with pytest.raises(OptionError, match=reason):
            things.register(type("Wrong", (), wrong))
        assert things.parts() == {}


def test_objects_are_parts_too(things: Registry[Any]) -> None:
    assert things.register(Set("one")) == Set("one")
    things.register(Set("one"))  # its module was imported anew
    with pytest.raises(OptionError, match=r"'one' exists already: .*\.Set$"):
        things.register(Set("one", "another set"))
    with pytest.raises(
        OptionError, match=r"\.Set is no thing: it needs `name` and `about`"
    ):
        things.register(Set("two", about=""))


def test_a_package_is_imported_when_a_part_is_first_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "shelf_of_things"
    (package / "deep").mkdir(parents=True)
    for name in ("__init__.py", "deep/__init__.py"):
        (package / name).touch()
    (package / "base.py").write_text(
        "from judgesmith.parts import Registry\nthings = Registry('thing', "
        "packages=('shelf_of_things',), group='judgesmith.things')\n"
    )
    (package / "deep" / "one.py").write_text(
        "from ..base import things\n@things.register\nclass One:\n    name = 'one'\n    about = 'x'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from shelf_of_things.base import things  # type: ignore[import-not-found]

    assert things.names() == ("one",)


def test_a_missing_dependency_of_a_built_in_part_is_said_each_time() -> None:
    things: Registry[Any] = Registry(
        "thing", packages=("there_is_no_such_package",), group="judgesmith.things"
    )
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError):
            things.names()


# -- plug-ins


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise RuntimeError('no luck')", "RuntimeError: no luck"),
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        (
            "import there_is_no_such_module",
            "ModuleNotFoundError: No module named 'there_is_no_such_module'",
        ),
        ("class Broken(", "SyntaxError: "),
        ("x = 1", "AttributeError: "),
        ("class Part:\n    name = 'part'", "OptionError: "),
        (
            "class Part:\n    name = 'plain'\n    about = 'takes the name of another'",
            "exists already: ",
        ),
        (
            (
                "from judgesmith import parts\n"
                "class Part:\n    name = 'p'\n"
                "    about = 'a'\n    class Options(parts.Options):\n"
                "        n: int = 1"
            ),
            "option 'n' has no help",
        ),
        ("Part = 7", "OptionError: builtins.int is no thing"),
    ],
)
def test_a_broken_plug_in_is_named_and_left_out(
    source: str,
    reason: str,
    things: Registry[Any],
    installed: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    module = f"plugin_{abs(hash(source))}"
    (tmp_path / f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    installed(broken=f"{module}:Part", mine=f"{__name__}:Plugin")
    things.register(Plain)
    assert things.names() == ("plain", "mine")  # the others are there
    assert reason in things.broken["broken"]
    assert set(things.broken) == {"broken"}
    assert "thing plug-in 'broken' is left out" in caplog.text
    with pytest.raises(
        OptionError,
        match=r"thing 'broken' is unknown.*; the plug-in 'broken' is broken: ",
    ):
        things.get("broken")


def test_what_a_plug_in_registered_before_it_broke_is_left_out_too(
    things: Registry[Any],
    installed: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parts, "shared_by_this_test", things, raising=False)
    (tmp_path / "half_of_a_plugin.py").write_text(
        "from judgesmith.parts import shared_by_this_test as things\n@things.register\nclass One:\n    name = 'one'\n"
        "    about = 'x'\n    aliases = ('uno',)\nraise ValueError('then this')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    installed(half="half_of_a_plugin:One")
    assert things.names() == ()
    assert "uno" not in things
    assert things.broken == {"half": "ValueError: then this"}


# -- options


def test_options_describe_themselves() -> None:
    told = {row.name: (row.type, row.default, row.help) for row in describe(Shown)}
    assert told == {
        "reading": ("said | expected", "said", "How the number is read."),
        "samples": ("whole number, ≥ 1, ≤ 64", "4", "How many answers."),
        "heat": ("number | none, ≥ 0", "none", "Temperature."),
        "plain": ("yes or no", "no", "No explanation."),
        "names": ("a list", "none", "Names of criteria."),
        "file": ("file | none", "none", "A file."),
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"sample": 3},
            r"^--method x has no option 'sample' \(did you mean 'samples'\?\); it has reading, samples, heat",
        ),
        ({"zzz": 3}, r"^--method x has no option 'zzz'; it has"),
        (
            {"samples": 0},
            r"^--method x, samples: Input should be greater than or equal to 1; got 0$",
        ),
        (
            {"reading": "sung"},
            r"^--method x, reading: Input should be 'said' or 'expected'; got 'sung'$",
        ),
        ({"heat": float("nan")}, r"^--method x, heat: .*finite number; got nan$"),
        ({"reading": "x" * 10_000}, r"^--method x, reading: "),
    ],
)
def test_what_is_no_option_or_off_its_limits_is_refused(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message) as refused:
        read_options(Shown, given, "--method x")
    assert len(str(refused.value)) <= 400
    with pytest.raises(ValueError, match="frozen"):
        Shown().samples = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("reading", "expected", "expected"),
        ("samples", "7", 7),
        ("heat", "0.5", 0.5),
        ("heat", "none", None),
        ("heat", "", None),
        ("plain", "yes", True),
        ("plain", "false", False),
        ("names", "a, b,", ("a", "b")),
        ("names", "", ()),
        ("names", '["a, b", "c"]', ("a, b", "c")),
        ("names", "[a", ("[a",)),
        ("file", "a/b.txt", Path("a/b.txt")),
    ],
)
def test_a_text_becomes_the_value(name: str, text: str, value: object) -> None:
    given = from_text(Shown.model_fields[name], text)
    assert getattr(read_options(Shown, {name: given}, "--set"), name) == value


@given(st.sampled_from(sorted(Shown.model_fields)), st.text(max_size=30))
def test_any_text_is_read_or_refused_in_one_line(name: str, text: str) -> None:
    try:
        made = read_options(
            Shown, {name: from_text(Shown.model_fields[name], text)}, "--set"
        )
    except OptionError as error:
        assert str(error).startswith(f"--set, {name}: ")
        assert "\n" not in str(error)
    else:
        assert read_options(Shown, made.settings(), "again") == made  # JSON and back
