"""The configuration of a study: its options, its arms, and allowed changes between two runs of one folder.

Options come from YAML and flags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml  # type: ignore[import-untyped,unused-ignore]
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
)
from pydantic.fields import FieldInfo

from judgesmith.agreement.correlation import Level
from judgesmith.compiling.run import METHOD, OPTIMIZER, Setup
from judgesmith.errors import OptionError
from judgesmith.optimizers.registry import optimizers
from judgesmith.parts import Options, from_text, nearest, option, read_options
from judgesmith.presets import layered
from judgesmith.programs.models.lm import Connection
from judgesmith.programs.registry import methods
from judgesmith.running.opening import connection_of
from judgesmith.running.settings import (
    Catalogue,
    ModelOptions,
    Owner,
    ReachOptions,
    choices_of,
    read_yaml,
)

Kind = Literal["optimizers", "ablation", "labels", "models"]
Size = int | Literal["all"]

#: How models are reached: read from a file, never written to one.
CONNECTION = ("api_base", *ReachOptions.model_fields)
#: What a cell decides, or the whole study: no arm may have its own.
OF_STUDY = (
    "labels",
    "lm",
    "output",
    "aspect",
    "scale",
    "columns",
    "heldout",
    "level",
    "seed",
    "max_calls",
    "max_cost",
    "cv",
    "mlflow",
    "baseline",
    *ModelOptions.model_fields,
)
#: Parts of an arm's name beside optimizers, variants and methods.
PARTS: Mapping[str, Mapping[str, Any]] = {
    "racing": {"racing": True},
    "no-search": {"optimizer": "zero-shot"},
    "one-batch": {"batches": 1},
    "no-task": {"use_task": False},
    "no-criteria": {"use_criteria": False},
    "no-os-e": {"combine": "mean"},
    "no-explanations": {"explain": "none"},
}
OWN_CRITERIA = "own-criteria"
#: The arms of Active-Critic's Table 1 (the variants), Table 4 (without McS-E it is the coarse variant; own-criteria is
#: added where there are some), Figure 2 (explanations) and Figure 3 (search, then task inference from one mini-batch).
ABLATION = (
    "fine",
    "coarse",
    "vanilla",
    "fine+no-task",
    "fine+no-os-e",
    "fine+no-explanations",
    "coarse+no-explanations",
    "fine+no-search",
    "coarse+no-search",
    "fine+no-search+one-batch",
    "coarse+no-search+one-batch",
)
#: From the cheapest to the dearest; those that are not registered are left out.
OPTIMIZERS = (
    "zero-shot",
    "labeled-few-shot",
    "random-search",
    "random-search+racing",
    "optuna",
    "gepa",
)


class StudyOptions(Options):
    """Options of `judgesmith study` beside those of `judgesmith compile`."""

    baseline: str = option("", "Arm to compare the others with. none: the first.")
    method: str = option(METHOD, "Method of arms that name none.")
    optimizer: str = option(OPTIMIZER, "Optimizer of arms that name none.")
    library_aspect: str | None = option(
        None,
        "Library aspect that the score measures, as [TASK/]ASPECT. none: the aspect with the score's name.",
    )


def catalogue() -> Catalogue:
    """Return the settings of a study beside its own fields.

    They are its own, and those of `judgesmith compile` for any parts.
    """
    compiling = Setup().catalogue()
    owners = (Owner("study", "the study", StudyOptions), *compiling.owners)
    return Catalogue(
        owners, "the study", compiling.others, "; see `judgesmith list options study`"
    )


@cache
def declared() -> dict[str, list[FieldInfo]]:
    """Return the settings that an arm may have, with the declarations of the parts that have them."""
    return {
        name: fields
        for name, fields in catalogue().fields().items()
        if name not in OF_STUDY
    }


def default_of(name: str) -> Any:
    """Return the default of a setting, as a JSON value; None if its parts have none, or do not agree."""
    result = [_plain(one.default) for one in declared().get(name, ())]
    return result[0] if result and all(value == result[0] for value in result) else None


def check_settings(
    settings: Mapping[str, Any], where: str, beside: Sequence[str] = ()
) -> dict[str, Any]:
    """Return settings by the names of options, as JSON values.

    Args:
        settings: The settings.
        where: Their place, for messages.
        beside: Other names that one may have meant there.

    Raises:
        OptionError: For unknown settings and wrong values.
    """
    result: dict[str, Any] = {}
    for key, value in settings.items():
        name = "library_aspect" if key == "as" else key.replace("-", "_")
        if name not in declared():
            raise OptionError(
                f"{where}: there is no option {key!r}{nearest(name, [*declared(), *beside])}"
            )
        result[name] = _checked(declared()[name], value, f"{where}, {key}")
        registry = {"method": methods, "optimizer": optimizers}.get(name)
        if registry is not None:
            registry.get(value)  # raises with the nearest name
    return result


def _checked(fields: Sequence[FieldInfo], value: Any, where: str) -> Any:
    """A value as the first of these declarations that takes it, as JSON."""
    wrong = ""
    for one in fields:
        plain = from_text(one, value) if isinstance(value, str) else value
        try:
            declared_type: Any = Annotated[one.annotation, *one.metadata, None]
            return _plain(TypeAdapter(declared_type).validate_python(plain))
        except ValidationError as error:
            wrong = wrong or f"{where}: {error.errors()[0]['msg']}; got {value!r}"
    raise OptionError(wrong)


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return [_plain(v) for v in value] if isinstance(value, tuple | list) else value


class Arm(BaseModel):
    """An arm to compare: settings that differ from the study's own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=80)
    settings: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def of(cls, stated: Any, own_criteria: str | None) -> Arm:
        """Read an arm from `fine+no-task+max_demos=8`, or from a mapping of settings with a name.

        Args:
            stated: The text or mapping.
            own_criteria: The file of the user's criteria.

        Raises:
            OptionError: For unknown parts.
        """
        if isinstance(stated, Mapping):
            settings = {str(k): v for k, v in stated.items() if k != "name"}
            if not isinstance(stated.get("name"), str) or not stated["name"].strip():
                raise OptionError(
                    f"arms: an arm of several lines needs a name: …; got {dict(stated)!r}"
                )
            return cls(
                name=_name(stated["name"]),
                settings=check_settings(settings, f"arm {stated['name']!r}"),
            )
        if not isinstance(stated, str) or not stated.strip():
            raise OptionError(
                f"arms: {stated!r} is neither a name such as fine+no-task nor settings with a name"
            )
        settings = {}
        for part in (p.strip() for p in stated.split("+")):
            key, equals, value = part.partition("=")
            if equals:
                settings |= check_settings(
                    {key.strip(): value.strip()}, f"arm {stated!r}"
                )
            elif part == OWN_CRITERIA:
                if own_criteria is None:
                    raise OptionError(
                        f"arm {stated!r}: no criteria; give them with --criteria FILE"
                    )
                settings["criteria"] = own_criteria
            else:
                settings |= _meaning(part, stated)
        return cls(name=_name(stated), settings=settings)


def _name(text: str) -> str:
    name = " ".join(text.split())
    if len(name) > 80:
        raise OptionError(
            f"arms: the name {name[:30]!r}… has more than 80 characters; give a shorter one"
        )
    return name


def _meaning(part: str, arm: str) -> Mapping[str, Any]:
    if part in PARTS:
        return PARTS[part]
    variants = choices_of(methods.get(METHOD).Options, "variant")
    aliases = [alias for one in methods.parts().values() for alias in one.aliases]
    named = [*methods.names(), *aliases]
    for setting, names in (
        ("optimizer", optimizers),
        ("variant", variants),
        ("method", named),
    ):
        if part in names:  # the registry knows the older name of zero-shot, too
            return {setting: part}
    others = [f"{prefix}NAME" for prefix in optimizers.through]
    choices = [*optimizers.names(), *others, *variants, *named, *PARTS, OWN_CRITERIA]
    raise OptionError(
        f"arm {arm!r}: {part!r} is not one of {', '.join(choices)}, nor OPTION=VALUE{nearest(part, choices)}"
    )


def default_arms(kind: Kind, method: str, own_criteria: bool) -> list[str]:
    """Return the arms of a study whose configuration names none."""
    available = set(optimizers.names())
    if kind == "optimizers":
        return [name for name in OPTIMIZERS if name.split("+")[0] in available]
    if kind == "ablation":
        return [
            *ABLATION[:4],
            *(["fine+own-criteria"] if own_criteria else []),
            *ABLATION[4:],
        ]
    if kind == "models":
        return ["zero-shot", "random-search"]
    return ["zero-shot", "labeled-few-shot", "random-search"]


class StudyConfig(BaseModel):
    """A study, resolved: everything that decides its results. Addresses and keys are no part of it.

    heldout: a share, a number of rows or a file. train: how many labels an arm learns from; "all" is what is not held
    out. baseline: the arm that the others are compared with. settings: of `compile`, for all arms. max_calls: what
    fitting one cell may spend. files: hashes of the files that settings name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    study: Kind
    labels: str
    aspect: str | None = None
    scale: tuple[float, float] | None = None
    columns: tuple[str, ...] = ()
    lm: tuple[str, ...] = ()
    heldout: str = "0.5"
    train: tuple[Size, ...] = Field(default=("all",), min_length=1)
    seeds: tuple[int, ...] = Field(default=(0, 1, 2), min_length=1)
    level: Level = "pooled"
    max_calls: int | None = Field(default=None, ge=1)
    temperature: float = 0.0
    max_tokens: int | None = None
    baseline: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    arms: tuple[Arm, ...] = Field(min_length=1)

    @field_validator("lm", "columns", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("heldout", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int | float) else value

    @field_validator("train", mode="before")
    @classmethod
    def _sizes(cls, value: Any) -> Any:
        if isinstance(value, str):
            parts = [p.strip() for p in value.split(",") if p.strip()]
        else:
            parts = value
        parts = [parts] if isinstance(parts, int) else parts
        if isinstance(parts, list | tuple):
            return [p if p == "all" else _whole(p, 4, "train") for p in parts]
        return parts

    @field_validator("seeds", mode="before")
    @classmethod
    def _seeds(cls, value: Any) -> Any:
        """A number of seeds, or a list of them (`0,4,7`)."""
        if isinstance(value, str):
            parts = [p.strip() for p in value.split(",") if p.strip()]
            value = parts if "," in value else _whole(value, 1, "seeds")
        if isinstance(value, int):
            return list(range(value))
        if isinstance(value, list | tuple):
            return [_whole(p, 0, "seeds") for p in value]
        return value

    @field_validator("lm", "train", "seeds")
    @classmethod
    def _once(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(set(value)) < len(value):
            raise ValueError("one of them appears twice")
        return value

    def arm(self, name: str) -> Arm:
        """Return the arm of that name."""
        return next(arm for arm in self.arms if arm.name == name)

    def setup(self, arm: Arm) -> Setup:
        """Return the method and the optimizer of an arm."""
        settings = {**self.settings, **arm.settings}
        return Setup(settings["method"], settings["optimizer"])

    def shared(self, arm: Arm) -> dict[str, Any]:
        """Return the settings of the study that mean something to an arm.

        The others are for other arms, perhaps of a later run of the same folder.
        """
        catalogue = self.setup(arm).catalogue()
        return {
            name: value
            for name, value in self.settings.items()
            if catalogue.takes(name)
        }

    def files(self) -> dict[str, str]:
        """Return the files that settings name, with the beginnings of their hashes."""
        every = (self.settings, *(arm.settings for arm in self.arms))
        named = [settings.get("criteria") for settings in every]
        return {str(path): _hash(Path(path)) for path in dict.fromkeys(named) if path}

    def to_yaml(self, resolved: Mapping[str, Any]) -> str:
        """Return the text of a file that --config reads.

        Args:
            resolved: Facts that are kept beside, such as the labels' fingerprint.
        """
        data = self.model_dump(mode="json")
        settings = data.pop("settings")
        arms = [{"name": arm["name"], **arm["settings"]} for arm in data.pop("arms")]
        data["heldout"] = self.heldout
        return str(
            yaml.safe_dump(
                {**data, **settings, "arms": arms, "resolved": dict(resolved)},
                sort_keys=False,
                allow_unicode=True,
            )
        )


def _whole(value: Any, least: int, name: str) -> int:
    try:
        number = int(str(value))
    except ValueError:
        raise ValueError(f"{value!r} is not a whole number") from None
    if number < least:
        raise ValueError(f"{name}: {number} is less than {least}")
    return number


def _hash(path: Path) -> str:
    try:
        return sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror or error}") from None


# Reading -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StudyRequest:
    """The options of a study as they came: those of the YAML file, and the flags that were given."""

    kind: Kind
    file: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, Any] = field(default_factory=dict)
    origin: str = "flags"

    @classmethod
    def read(
        cls,
        kind: Kind,
        config: Path | None,
        flags: Mapping[str, Any],
        presets: Sequence[str] = (),
    ) -> StudyRequest:
        """Read the file, the presets below it and the flags.

        Args:
            kind: The kind of study.
            config: The YAML file.
            flags: Flags by the names of the YAML file, None if absent.
            presets: Presets by name, which the file goes before.
        """
        named = [
            *(f"--preset {name}" for name in presets),
            *([str(config)] if config else []),
        ]
        file = layered(presets, read_yaml(config) if config else {})
        return cls(kind, file, flags, " or ".join(named) or "flags")

    def has(self, name: str) -> bool:
        """Return True if the file or a flag has this setting."""
        return name in self.file or self.flags.get(name) is not None

    def connection(self) -> Connection:
        """Return the connection to models, by the flags and otherwise by the file.

        Raises:
            OptionError: For unusable addresses or limits.
        """
        result = {
            n: v
            for source in (self.file, self.flags)
            for n, v in source.items()
            if n in CONNECTION and v is not None
        }
        base = result.pop("api_base", None)
        if not isinstance(base, str | None):
            raise OptionError(
                f"{self.origin}, api_base: an address is a text; got {base!r}"
            )
        return connection_of(read_options(ReachOptions, result, self.origin), base)

    def folder(self) -> Path:
        """Return the folder for the results that the file names; study-KIND if it names none."""
        return Path(str(self.file.get("output") or f"study-{self.kind}"))

    def config(self) -> StudyConfig:
        """Merge file and flags; flags take precedence.

        Raises:
            OptionError: For unknown settings and wrong values.
        """
        stated = {
            k: v
            for k, v in self.file.items()
            if k not in ("resolved", "output", *CONNECTION)
        }
        stated |= {
            k: v for k, v in self.flags.items() if v is not None and k not in CONNECTION
        }
        if stated.pop("study", self.kind) != self.kind:
            raise OptionError(
                f"{self.origin} is of `judgesmith study {self.file['study']}`, not of `study {self.kind}`"
            )
        arms = stated.pop("arms", None)
        own = {
            name: stated.pop(name)
            for name in list(stated)
            if name in StudyConfig.model_fields and name != "settings"
        }
        settings = check_settings(
            stated, self.origin, beside=[*StudyConfig.model_fields, *CONNECTION]
        )
        # In the ablation, the user's criteria stand for the data set's own and are of that one arm.
        if self.kind == "ablation":
            criteria = settings.pop("criteria", None)
        else:
            criteria = settings.get("criteria")
        stated_settings = {
            name: value for name, value in settings.items() if value not in (None, [])
        }
        settings = {"method": METHOD, "optimizer": OPTIMIZER} | stated_settings
        if arms is None:
            arms = default_arms(self.kind, str(settings["method"]), bool(criteria))
        arms = [arms] if isinstance(arms, str) else arms
        if not isinstance(arms, list | tuple):
            raise OptionError(f"{self.origin}: arms is a list; got {arms!r}")
        parsed = [Arm.of(arm, criteria) for arm in arms]
        names = [arm.name for arm in parsed]
        if len(set(names)) < len(names):
            raise OptionError(
                f"arms: {next(n for n in names if names.count(n) > 1)!r} appears twice"
            )
        baseline = own.setdefault("baseline", "") or names[0]
        if baseline not in names:
            raise OptionError(
                f"baseline {baseline!r} is not one of the arms: {', '.join(names)}"
            )
        own["baseline"] = baseline
        if "labels" not in own:
            raise OptionError(
                "missing argument LABELS; name a file, or give `labels: FILE` in the --config file"
            )
        try:
            return StudyConfig(
                study=self.kind, **own, settings=settings, arms=tuple(parsed)
            )
        except ValidationError as error:
            first = error.errors()[0]
            name = first["loc"][0] if first["loc"] else ""
            raise OptionError(
                f"{self.origin}, {name}: {first['msg'].removeprefix('Value error, ')}"
            ) from None


# Two runs of one folder ----------------------------------------------------------------------------------------------

#: A study may grow: what is finished stays as it is.
GROWS = ("arms", "lm", "train", "seeds")


def changes(old: StudyConfig, new: StudyConfig) -> list[str]:
    """Describe the changes that make the results of two studies incomparable; none if `new` only adds to `old`."""
    differences = []
    for name in StudyConfig.model_fields:
        if name in (
            "labels",
            "settings",
            "baseline",
            *GROWS,
        ):  # labels count by their fingerprint
            continue
        before = getattr(old, name)
        now = getattr(new, name)
        if before != now:
            differences.append(f"{name} was {_say(before)}, is {_say(now)}")
    for name in ("lm", "train", "seeds"):
        gone = [v for v in getattr(old, name) if v not in getattr(new, name)]
        if gone:
            differences.append(
                f"{name} was {_say(getattr(old, name))}, is {_say(getattr(new, name))}"
            )
    differences += _setting_changes(old.settings, new.settings, "")
    present = {arm.name: arm for arm in new.arms}
    for arm in old.arms:
        if arm.name not in present:
            differences.append(f"arm {arm.name!r} is gone")
        else:
            differences += _setting_changes(
                arm.settings, present[arm.name].settings, f"arm {arm.name!r}: ", {}
            )
    return differences


def _setting_changes(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    where: str,
    defaults: Mapping[str, Any] | None = None,
) -> list[str]:
    # An option that is not there stands at its default.
    names: Sequence[str] = list(dict.fromkeys((*old, *new)))
    pairs = [
        (
            name,
            *(
                one.get(name, default_of(name) if defaults is None else None)
                for one in (old, new)
            ),
        )
        for name in names
    ]
    return [
        f"{where}{name} was {_say(a)}, is {_say(b)}" for name, a, b in pairs if a != b
    ]


def _say(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return "not given" if value in (None, "") else str(value)
