"""What a judge's agreement with people rests on: the question that its labels answered, and the model that was asked.

A contract is one value in the provenance of a saved judge. Each command that reads human ratings for a judge, or
judges with another model, keeps it or says both readings: there is one check of ratings, and one of models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from judgesmith.errors import OptionError
from judgesmith.programs.models.names import qualified
from judgesmith.programs.models.provider import NO_MODEL
from judgesmith.programs.outcome import Outcome
from judgesmith.rows import folded_name, named_roles
from judgesmith.signatures.values import Verdict

#: Roles of columns that hold human ratings: who names one of them says which ratings are meant.
RATINGS = ("score", "scores", "rater_score", "winner")
#: Roles of the two texts that a preference compares.
SIDES = ("output_a", "output_b")
#: How the overall score of an output is called where labels name no aspect.
_OVERALL = ("", "overall", "score")

Column = str | tuple[str, ...]
Scale = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Question:
    """Human ratings of one aspect as they are read, by one or several raters. Unknown parts are empty."""

    ratings: tuple[str, ...] = ()
    """Columns of the ratings."""
    kind: str = ""
    """score, category, binary or preference."""
    scale: Scale | None = None
    aspect: str = ""

    @property
    def about(self) -> str:
        """The aspect; "" where it is called as the column of its ratings is, which tells no more."""
        return "" if self.aspect in self.ratings else self.aspect

    def __str__(self) -> str:
        """Say it in words."""
        names = " and ".join(map(repr, self.ratings)) or "ratings"
        words = [f"{names} ({self.kind or 'score'}"]
        if self.aspect not in _OVERALL:
            words.append(f"of {self.aspect!r}")
        if self.scale is not None and self.kind != "preference":
            words.append("on {:g}..{:g}".format(*self.scale))
        return " ".join(words) + ")"


@dataclass(frozen=True, slots=True)
class Contract:
    """What a judge was measured on: columns, kind, scale and aspect of its labels, and its model.

    An artifact of an earlier version has only parts of it; an empty part is not compared.
    """

    columns: Mapping[str, Column] = field(default_factory=dict)
    """By role, as `--columns` takes them; the raters of `rater_score` are several."""
    question: Question = Question()
    model: str = ""
    """As it was named."""
    fingerprint: str = ""
    """What tells the model from others: the SHA-256 of its file, or the name with its provider where it is served."""
    earlier: bool = False
    """An earlier version saved it, in parts: what differs is then said and not refused."""

    @classmethod
    def of(cls, provenance: Mapping[str, Any]) -> Contract | None:
        """Return the contract in a provenance; None for a judge that was compiled from no labels."""
        held = provenance.get("contract")
        if isinstance(held, Mapping):
            return cls._read(held)
        labels = provenance.get("labels")
        if not isinstance(labels, Mapping):
            return None
        columns = labels.get("columns")
        known = {
            "columns": columns if isinstance(columns, Mapping) else {},
            "aspect": labels.get("aspect"),
        }
        return replace(cls._read(known), earlier=True)

    @classmethod
    def _read(cls, held: Mapping[str, Any]) -> Contract:
        columns = {
            role: name if isinstance(name, str) else tuple(map(str, name))
            for role, name in (held.get("columns") or {}).items()
        }
        scale = held.get("scale")
        question = Question(
            ratings_of(columns),
            str(held.get("kind") or ""),
            None if scale is None else (float(scale[0]), float(scale[1])),
            str(held.get("aspect") or ""),
        )
        model, mark = (str(held.get(name) or "") for name in ("model", "fingerprint"))
        return cls(columns, question, model, mark)

    def completed(self, outcome: Outcome, model: str) -> Contract:
        """Return the contract of an artifact of an earlier version with what else the artifact tells."""
        kind = "score"
        if outcome.preference is not None:
            kind = "preference"
        elif outcome.decision is not None:
            kind = "binary" if outcome.decision.binary else "category"
        scale = (outcome.scale.low, outcome.scale.high)
        asked = replace(self.question, kind=kind, scale=scale)
        return replace(self, question=asked, model=model)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        asked = self.question
        return {
            "columns": {
                role: name if isinstance(name, str) else list(name)
                for role, name in self.columns.items()
            },
            "kind": asked.kind,
            "scale": None if asked.scale is None else list(asked.scale),
            "aspect": asked.aspect,
            "model": self.model,
            "fingerprint": self.fingerprint,
        }

    # -- the columns

    def columns_in(self, names: Iterable[str]) -> dict[str, Column]:
        """Return the columns that a file has, by role: of several raters' columns all or none.

        Ratings of a file that has some of the raters' columns are another question, which `check` refuses.
        """
        there = set(names)
        known = {
            role: name
            for role, name in self._resolved(there).items()
            if there.issuperset(_names(name))
        }
        if not there.issuperset(ratings_of(self._resolved(there))):
            known = {role: name for role, name in known.items() if role not in RATINGS}
        if not set(SIDES) <= set(known):
            known = {role: name for role, name in known.items() if role not in SIDES}
        return known

    def texts_in(self, names: Iterable[str]) -> dict[str, str]:
        """Return the columns of `columns_in` that hold texts, not ratings."""
        return {
            role: name
            for role, name in self.columns_in(names).items()
            if role not in RATINGS and isinstance(name, str)
        }

    @property
    def ratings(self) -> dict[str, Any]:
        """Return the columns of ratings, as JSON values."""
        columns = self.to_dict()["columns"]
        return {role: columns[role] for role in RATINGS if role in columns}

    def _resolved(self, names: set[str]) -> Mapping[str, Column]:
        """Return the columns, those of several raters apart, which earlier versions saved as one text."""
        score = self.columns.get("score")
        if not isinstance(score, str) or score in names or ", " not in score:
            return self.columns
        raters = tuple(score.split(", "))
        if not names.issuperset(raters):
            return self.columns
        apart = {role: name for role, name in self.columns.items() if role != "score"}
        return apart | {"rater_score": raters}

    # -- the ratings

    def check(
        self,
        read: Question,
        *,
        judge: str,
        origin: str,
        chosen: bool = False,
        compared: bool = False,
    ) -> str | None:
        """Check that ratings answer the question of the labels that the judge was compiled from.

        Args:
            read: How the ratings are read.
            judge: The judge's name.
            origin: The file of the ratings.
            chosen: The user named their columns, which then may have other names.
            compared: The judge's scores stand beside the ratings, and the user asked to compare them with these.

        Returns:
            A note for ratings that the user chose, under other names than the labels had.

        Raises:
            OptionError: For another question, with both readings.
        """
        own = replace(self.question, ratings=self._shown(read.ratings))
        both = f"{judge} was compiled from {own}; of {origin} it would be measured on {read}"
        differs = [
            name
            for name, same in (
                ("kind", _same_kind(own, read)),
                ("scale", own.scale is None or read.scale in (None, own.scale)),
            )
            if not same
        ]
        if differs and (compared or self.earlier):
            return both
        if differs:
            raise OptionError(
                f"{both}: another {' and another '.join(differs)}. Give ratings of the judge's question "
                f"({self._options()}); to compare it with others, write its scores with `judgesmith score` and "
                "evaluate that file with --human COLUMN"
            )
        if speaks_of(own.about, read.about) and not _other_columns(own, read):
            return None
        if chosen or self.earlier:
            return both
        raise OptionError(
            f"{both}. If these are the same question, name them: --human {read.aspect!r}, or "
            f"{_as_options(read.ratings)}; else give ratings of the judge's own ({self._options()})"
        )

    def _shown(self, read: Sequence[str]) -> tuple[str, ...]:
        return ratings_of(self._resolved(set(read))) or self.question.ratings

    def _options(self) -> str:
        ratings = self.question.ratings
        return _as_options(ratings) if ratings else f"of {self.question.aspect!r}"

    # -- the model

    def moved(self, name: str, fingerprint: str) -> str:
        """Return one sentence on a judge that now asks another model than it was measured with; "" for the same one.

        Args:
            name: The model that it asks.
            fingerprint: That model's mark.
        """
        known = self.fingerprint or qualified(self.model)
        if not known or NO_MODEL in (known, name):  # a judge of columns asks none
            return ""
        if known in (fingerprint, qualified(name)):
            return ""
        return (
            f"measured with {self.model}, and asks {name} now, of which no agreement with people is known: scores "
            f"have no interval. `judgesmith check LABELS --judge FILE --lm {name}` measures it, `judgesmith "
            f"compile LABELS --start FILE --lm {name}` compiles for it"
        )


def contracts_of(provenances: Iterable[Any]) -> list[Contract]:
    """Return the contracts of several aspects, of those that have one."""
    found = [Contract.of(part) for part in provenances if isinstance(part, Mapping)]
    return [contract for contract in found if contract is not None]


def unmeasured(verdict: Verdict, moved: str) -> Verdict:
    """Return a verdict of a model that was not measured: without intervals, with the sentence that says so."""
    aspects = {
        name: one.model_copy(update={"interval": None})
        for name, one in verdict.aspects.items()
    }
    more = {"interval": None, "notes": (*verdict.notes, moved), "aspects": aspects}
    return verdict.model_copy(update=more)


def with_chosen(
    known: Mapping[str, Column], chosen: Mapping[str, Any]
) -> dict[str, Any]:
    """Return known columns with those that the user named, which replace all known ones of ratings, or of outputs."""
    gone = set[str]()
    if set(RATINGS) & set(chosen):
        gone.update(RATINGS)
    if "output" in chosen:
        gone.update(SIDES, RATINGS)
    return {role: name for role, name in known.items() if role not in gone} | dict(
        chosen
    )


def _names(column: Column) -> tuple[str, ...]:
    return (column,) if isinstance(column, str) else column


def ratings_of(columns: Mapping[str, Column]) -> tuple[str, ...]:
    """Return the columns of ratings."""
    return tuple(
        name for role in RATINGS if role in columns for name in _names(columns[role])
    )


def _as_options(ratings: Sequence[str]) -> str:
    role = "rater_score" if len(ratings) > 1 else "score"
    return " ".join(f"--columns '{role}={name}'" for name in ratings)


def _same_kind(one: Question, other: Question) -> bool:
    """Return True unless both kinds are known and differ.

    Categories may be read as the numbers that they are, and words of the judge's own columns as scores.
    """
    known = {one.kind, other.kind} - {""}
    if len(known) < 2 or known == {"score", "category"}:
        return True
    own_words = one.kind in ("score", "category") and other.kind == "binary"
    return own_words and one.ratings == other.ratings and one.scale == other.scale


def speaks_of(one: str, other: str) -> bool:
    """Return True if two names are of one aspect, or if both are of the output as a whole."""
    plain = [
        name.removeprefix("zscores.").removeprefix("scores.").casefold()
        for name in (one, other)
    ]
    return plain[0] == plain[1] or all(name in _OVERALL for name in plain)


def _other_columns(one: Question, other: Question) -> bool:
    """Return True if ratings stand in other columns, unless both names say no more than score.

    Preferences are read as scores of two sides, whose column has a name of its own.
    """
    if one.kind == other.kind == "preference":
        return False
    before, now = ({name.casefold() for name in each.ratings} for each in (one, other))
    if not before or not now or before == now:
        return False
    names = (*one.ratings, *other.ratings)
    return not (len(before) == len(now) == 1 and all(map(_means_score, names)))


@cache
def _means_score(name: str) -> bool:
    return any(folded_name(name) in tier for tier in named_roles("ratings")["score"])
