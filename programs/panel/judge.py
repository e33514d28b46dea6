"""A panel of prompts: the same judgement is asked for in several forms, perhaps of several models, and averaged.

One prompt's answers are noisy in a way of their own; the mean of a few that differ in form agrees better with people
than any of them chosen by labels (`experiments/results/replay.md`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from judgesmith import parts
from judgesmith.errors import CallError, OptionError
from judgesmith.parts import option
from judgesmith.programs.answers.reading import Read
from judgesmith.programs.aspects import Aspect
from judgesmith.programs.comparing.comparison import settled
from judgesmith.programs.method import Cost, Words
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.programs.models.transport import Message
from judgesmith.programs.openlgauge.annotation import Focus, error_list
from judgesmith.programs.panel.averaging import (
    OF_MODELS,
    OF_PROMPTS,
    Standing,
    Standings,
    averaged,
    correlation,
    standardised,
    standings_of,
    weights_by_labels,
    worth_asking,
)
from judgesmith.programs.panel.criteria import LearnsCriteria
from judgesmith.programs.panel.forms import FORMS, FormName, Member
from judgesmith.programs.prompting.layouts import Reading
from judgesmith.programs.prompting.predict import Answer, JudgePredict, spent
from judgesmith.programs.refining import (
    Matrix,
    Refinement,
    Refiner,
    TrainingRows,
    score_matrix,
)
from judgesmith.programs.registry import methods
from judgesmith.signatures.values import (
    CriterionScore,
    Details,
    ErrorSpan,
    Item,
    Opinion,
    Verdict,
)
from judgesmith.tables import counted

#: Weights that lie nearer to equality are not worth a word.
TOLD = 0.1
#: How members are read, for people.
READINGS = {
    "said": "members' likeliest answers",
    "expected": "the mean of each member's answers, by the model's probabilities",
    "auto": "by the model's probabilities where it gives them, or members' likeliest answers",
}
#: Forms of a panel of one model, where none are asked for, and of a jury of several.
MEMBERS = 3
IN_JURY = 1


def distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names.

    Raises:
        OptionError: If one is repeated.
    """
    for name in names:
        if names.count(name) > 1:
            raise OptionError(f"{name} is repeated; name each once")
    return names


FormNames = Annotated[tuple[FormName, ...], AfterValidator(distinct)]


@dataclass(frozen=True, slots=True)
class Heard(Details):
    """Whom a verdict rests on. members: asked; left_out: those of them that gave no score."""

    members: int
    left_out: tuple[str, ...] = ()


@methods.register
class Panel(LearnsCriteria):
    """A panel of members that ask for the same judgement in different forms, averaged.

    Options: `judgesmith list methods panel`.

    Compiling standardises the members, leaves out those that say what another one says, and draws their weights from
    equality as far as labels say so: hardly for forms, further for models. A member that fails is left out of its row,
    with a note.

    >>> Panel("fluency", members=2).asked_members()
    ('criteria', 'percent')
    """

    kind: ClassVar[str] = "panel"
    about: ClassVar[str] = (
        "averages members that ask for the same judgement in different forms, or of several models"
    )
    takes_any_name: ClassVar[bool] = True
    takes_several: ClassVar[bool] = True
    fitted_always: ClassVar[bool] = True

    class Options(LearnsCriteria.Options):
        members: int = option(
            0,
            f"Forms that each model is asked in: one call each; 0: {MEMBERS}, and {IN_JURY} for a jury of several "
            "models.",
            ge=0,
            le=len(FORMS),
        )
        forms: FormNames = option(
            (),
            "Which forms, in their order, in place of members: "
            + "; ".join(f"{name}: {form.about}" for name, form in FORMS.items())
            + ".",
        )
        models: Annotated[
            tuple[str, ...], AfterValidator(distinct), Field(max_length=16)
        ] = option(
            (),
            "Further models of a jury, beside the judge's own (a second and third --lm).",
        )
        row_calls: int = option(
            0,
            "Calls a row at most; members beyond that are not asked, the last forms first. 0: no limit.",
            ge=0,
        )
        reading: Literal[Reading, "auto"] = option(
            "auto",
            "Each member's likeliest answer (said), or the mean of its answers under the model's probabilities "
            "(expected); auto takes the expectation where a model gives log-probabilities.",
            added=True,
            before="said",
        )

        @model_validator(mode="after")
        def _of_one_number(self) -> Self:
            if self.forms and self.members not in (0, len(self.forms)):
                raise OptionError(
                    f"members is {self.members}, and forms names {len(self.forms)}; leave members out"
                )
            return self

    options: Options

    class Fitted(parts.Options):
        panel: Standings | None = option(
            None,
            "The members that are asked, and how their percents are read beside the others'.",
        )

    def __init__(self, aspect: str | Aspect = "overall", **options: Any) -> None:
        super().__init__(aspect, **options)
        self.standings: dict[str, Standing] = {}
        #: Members that are asked no more; see `capabilities.HearsSeveral`.
        self.silent: tuple[str, ...] = ()
        self._connection: Connection | None = None
        self._open: dict[str, LanguageModel] = {}

    def build(self) -> None:
        """Make a member for each form."""
        forms = self.forms_asked()
        reading = self.options.reading
        for name in FORMS:
            vars(self).pop(f"by_{name}", None)
            if name in forms:
                member = Member(name, "said" if reading == "auto" else reading)
                setattr(self, f"by_{name}", member)

    @classmethod
    def in_words(cls, settings: Mapping[str, Any], words: Words) -> Self:
        """Build the panel, with several criteria of the user's own if there are some.

        Raises:
            OptionError: For criteria that are both given and to be inferred, or to be inferred without labels.
        """
        options = parts.read_options(cls.Options, settings, f"--method {cls.kind}")
        if options.infer and words.labels_aspect is None:
            raise OptionError(
                "infer learns the criteria from labels, and there are none: compile the judge, or give --criteria"
            )
        if options.infer and any(criterion.definition for criterion in words.criteria):
            raise OptionError(
                "infer learns the criteria from labels, and --criteria says them; give one"
            )
        if len(words.criteria) < 2 or words.library_aspect:
            return super().in_words(settings, words)
        own = {name: value for name, value in settings.items() if name != "aspect"}
        aspect = settings.get("aspect") or words.labels_aspect or "overall"
        return cls(aspect, criteria=words.criteria, task=words.task, **own)

    # -- who is asked

    def forms_asked(self) -> tuple[FormName, ...]:
        """Return the forms of its members, in their order."""
        if self.options.forms:
            return tuple(self.options.forms)
        usual = IN_JURY if self.models() else MEMBERS
        able = [name for name, form in FORMS.items() if not form.needs_reference]
        return tuple(able[: self.options.members or usual])

    def asked_members(self) -> tuple[str, ...]:
        """Return the members by name: a form, and for a model beside the judge's own `form of MODEL`."""
        if self.standings:
            return tuple(self.standings)
        named = self._every()[: self.options.row_calls or None]
        return tuple(name for name in named if name not in self.silent)

    def _every(self) -> tuple[str, ...]:
        """The members by name, however many calls a row may take."""
        return tuple(
            f"{form} of {model}" if model else form
            for form in self.forms_asked()
            for model in ("", *self.models())
        )

    @staticmethod
    def _parts(name: str) -> tuple[str, str]:
        """The form and the model of a member; "" for the judge's own."""
        form, _, model = name.partition(" of ")
        return form, model

    def models(self) -> tuple[str, ...]:
        """Return the names of the jury's models beside the judge's own."""
        return self.options.models

    def connect(self, connection: Connection | None) -> None:
        """Take the way to reach these models."""
        self._connection = connection
        self._open = {}

    def use(self, name: str, lm: str | LanguageModel | Any) -> None:
        """Let the model called `name` be this object."""
        self._open[name] = language_model(lm)

    def _model(self, name: str, lm: LanguageModel) -> LanguageModel:
        if not name or name == lm.name:
            return lm
        if name not in self._open:
            self._open[name] = language_model(
                name, sampling=lm.sampling, connection=self._connection
            )
        self._open[name].pay_with(lm)
        return self._open[name]

    def meet(self, aspect: str, items: Sequence[Item], lm: LanguageModel) -> None:
        """Check that the rows have references if a form needs them.

        Raises:
            OptionError: If they have none.
        """
        self.standings = {}  # of a judge that is compiled again
        lacking = [name for name in self.options.forms if FORMS[name].needs_reference]
        if lacking and not any(item.reference for item in items):
            raise OptionError(
                f"form {lacking[0]}: no row has a reference; leave the form out, or add that column"
            )

    def cost(self) -> Cost:
        """Return a call a row for each member."""
        return Cost(len(self.asked_members()))

    @property
    def brief(self) -> bool:
        """Return False: several answers a row."""
        return False

    async def prepare(self, lm: LanguageModel) -> None:
        """Probe the members' models, and settle the reading: expected if any of them gives log-probabilities."""
        models = [self._model(name, lm) for name in ("", *self.models())]
        able = [await model.capabilities() for model in models]
        if self.options.reading == "auto":
            expected = any(one.logprobs for one in able)
            self.choose(reading="expected" if expected else "said")

    # -- judging

    def focus(self) -> Focus:
        """Return the focus of all members: the aspect, its definition and the task."""
        criteria = self.knowledge.criteria
        definition = criteria[0].definition if len(criteria) == 1 else ""
        return Focus(self.options.aspect, definition, self.knowledge.description)

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        """Collect the members' opinions and average them."""
        names = self.asked_members()
        answers = await self._answers(names, item, lm)
        opinions = {
            name: self._opinion(name, answer, item) for name, answer in answers.items()
        }
        failed = sum(opinion.failure is not None for opinion in opinions.values())
        if 2 * failed > len(names):
            return _too_few(opinions, answers)
        percent = float(self._averaged([opinions])[0])
        return _verdict(percent, opinions, answers)

    async def _answers(
        self, names: Sequence[str], item: Item, lm: LanguageModel
    ) -> dict[str, Answer | CallError]:
        """Ask members, all at once, or one after the other if an embedded model then finds the row in its cache."""
        batches = [[name] for name in names] if lm.one_by_one else [list(names)]
        answers: dict[str, Answer | CallError] = {}
        for batch in batches:
            replies = await settled(self._asked(name, item, lm) for name in batch)
            answers |= zip(batch, replies, strict=True)
        return answers

    async def _asked(self, name: str, item: Item, lm: LanguageModel) -> Answer:
        form, model = self._parts(name)
        if FORMS[form].needs_reference and not item.reference:  # type: ignore[index]
            raise CallError("the row has no reference")
        member: Member = getattr(self, f"by_{form}")
        return await member.judge(
            item, self.focus(), self.knowledge.criteria, self._model(model, lm)
        )

    def _opinion(self, name: str, answer: Answer | CallError, item: Item) -> Opinion:
        if isinstance(answer, CallError):
            return Opinion(math.nan, failure=str(answer))
        member: Member = getattr(self, f"by_{self._parts(name)[0]}")
        opinion = member.opinion(answer, item)
        failure = "no criterion could be read" if math.isnan(opinion.percent) else None
        return Opinion(
            opinion.percent,
            opinion.label,
            opinion.explanation,
            opinion.errors,
            failure,
            notes=answer.read.notes,
        )

    def _averaged(self, rows: Sequence[Mapping[str, Opinion]]) -> Any:
        names = self.asked_members()
        standings = [self.standings.get(name, Standing()) for name in names]
        return averaged(_percents(rows, names), standings)

    # -- what is fitted

    def refiners(self) -> list[Refiner]:
        """Return the choice of members, and their averaging."""
        return [self._settle_members]

    def _settle_members(self, rows: TrainingRows) -> Refinement:
        """Leave out members that say what another one says, standardise and weigh the others."""
        names = sorted({*self.asked_members(), *self.silent}, key=self._every().index)
        opinions = [verdict.opinions for verdict in rows.verdicts]
        percents = _percents(opinions, names)
        places = worth_asking(percents)
        several = self._of_several([names[place] for place in places])
        standings, weights = _weighed(percents[:, places], rows.human, several)
        self.standings = {
            names[place]: standing.model_copy(
                update={"weight": round(float(weight), 6)}
            )
            for place, standing, weight in zip(places, standings, weights, strict=True)
        }
        shown = self._shares(rows, percents[:, places], weights)
        unscored = np.isnan(percents).sum(axis=0).tolist()
        failed = dict(zip(names, unscored, strict=True))
        left_out = sorted(set(names).difference(self.standings), key=names.index)
        changed = _in_words(names, percents, places, failed, weights)
        if self.options.reading == "expected":
            changed += "; members are read by the model's probabilities"
        return Refinement(
            self.kind,
            self._averaged(opinions),
            {"members": [*shown], "failed": failed, "left_out": left_out},
            changed=changed,
            candidate=self.kind,
            weights=shown,
        )

    def _of_several(self, names: Sequence[str]) -> bool:
        """Return whether members are of several models."""
        return len({self._parts(name)[1] for name in names}) > 1

    def _shares(
        self, rows: TrainingRows, percents: Matrix, weights: Matrix
    ) -> tuple[dict[str, Any], ...]:
        """Return each member that stays with its share of the weight and its agreement alone."""
        shares = weights / weights.sum()
        return tuple(
            {
                "name": name,
                "weight": round(float(share), 6),
                "q": round(rows.value(column), 6),
            }
            for name, share, column in zip(
                self.standings, shares, percents.T, strict=True
            )
        )

    def fitted(self) -> dict[str, Any]:
        """Return the members with their standings; see `capabilities.Learns`."""
        standings = {
            name: standing.settings() for name, standing in self.standings.items()
        }
        return {"panel": standings} if standings else {}

    def load_fitted(self, name: str, data: Any) -> None:
        """Take the data that `fitted` gave.

        Raises:
            OptionError: For data that does not fit.
        """
        standings = {
            member: parts.read_options(Standing, values, f"member {member}")
            for member, values in data.items()
        }
        every = self._every()
        if unknown := sorted(set(standings).difference(every)):
            raise OptionError(
                f"there is no member {unknown[0]!r} in this panel; it has {', '.join(sorted(every))}"
            )
        self.standings = standings

    def facts(self) -> dict[str, str]:
        """Return the members and the calls a row, for `judgesmith show`."""
        names = self.asked_members()
        return {
            "members": f"{', '.join(names)}; {counted(len(names), 'call')} a row",
            "read": READINGS[self.options.reading],
        }

    # -- demonstrations and prompts

    def taught(self) -> list[JudgePredict]:
        """Return the predictor of each form."""
        return [member.predict for member in self._by_form().values()]

    def _by_form(self) -> dict[str, Member]:
        """The member of each form that is asked for; models share it."""
        forms = [self._parts(name)[0] for name in self.asked_members()]
        return {form: getattr(self, f"by_{form}") for form in forms}

    def demonstration(self, item: Item, verdict: Verdict | None) -> dict[str, Any]:
        """Return a labelled row with the errors of a verdict."""
        demo = super().demonstration(item, verdict)
        if verdict is not None and verdict.errors:
            demo["annotation"] = error_list(verdict.errors)
        return demo

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        """Return the messages of each form for a row."""
        messages: dict[str, list[Message]] = {}
        for form, member in self._by_form().items():
            messages[form] = member.predict.messages(
                member.inputs(item, self.focus(), self.knowledge.criteria)
            )
        return messages


def _percents(rows: Sequence[Mapping[str, Opinion]], names: Sequence[str]) -> Matrix:
    return score_matrix(rows, names, lambda opinion: opinion.percent)


def _weighed(
    percents: Matrix, human: Any, several: bool
) -> tuple[list[Standing], Matrix]:
    """Return how members' percents are read, and their weights.

    Args:
        percents: The members' percents, a column each, NaN for a row that one did not score.
        human: The rows' human scores.
        several: Members are of several models, whose weights move further than those of forms.
    """
    standings = standings_of(percents)
    usable = np.isfinite(percents).any(axis=1)
    members = standardised(percents[usable], standings)
    prior = OF_MODELS if several else OF_PROMPTS
    return standings, weights_by_labels(members, np.asarray(human)[usable], prior)


def _reasons(opinions: Mapping[str, Opinion]) -> tuple[str, ...]:
    """Return why each member that is left out is."""
    return tuple(
        f"member {name} is left out: {opinion.failure}"
        for name, opinion in opinions.items()
        if opinion.failure is not None
    )


def _too_few(
    opinions: Mapping[str, Opinion], answers: Mapping[str, Answer | CallError]
) -> Verdict:
    """Return the verdict on a row for which most members gave no score."""
    reasons = _reasons(opinions)
    members = len(opinions)
    heard = members - len(reasons)
    why = f"only {heard} of {members} members gave a score: {'; '.join(reasons)}"
    if members == 1:
        why = str(next(iter(opinions.values())).failure)
    usage, raw = spent(answers.values())
    failed = Verdict.failed(why, usage=usage, raw=raw)
    return failed.model_copy(update={"opinions": opinions})


def _verdict(
    percent: float,
    opinions: Mapping[str, Opinion],
    answers: Mapping[str, Answer | CallError],
) -> Verdict:
    """Return the verdict of the members that gave a score."""
    heard = {
        name: opinion for name, opinion in opinions.items() if opinion.failure is None
    }
    left_out = tuple(name for name in opinions if name not in heard)
    read = [answer.read for answer in answers.values() if isinstance(answer, Answer)]
    usage, raw = spent(answers.values())
    return Verdict(
        percent=percent,
        explanation=_nearest(heard, percent),
        criteria=_criteria(read),
        errors=_errors(heard),
        repaired=any(part.repaired for part in read),
        notes=(*_reasons(opinions), *_notes(heard)),
        opinions=opinions,
        spread=_spread(heard),
        details=Heard(len(opinions), left_out),
        usage=usage,
        raw=raw,
    )


def _criteria(read: Sequence[Read]) -> Mapping[str, CriterionScore]:
    """Return the criterion scores of the first member that gave some."""
    for answer in read:
        if "criteria_scores" in answer.values:
            scores: Mapping[str, CriterionScore] = answer.values["criteria_scores"]
            return scores
    return {}


def _errors(heard: Mapping[str, Opinion]) -> tuple[ErrorSpan, ...]:
    """Return the errors of the first member that marked some."""
    return next(filter(None, (member.errors for member in heard.values())), ())


def _notes(heard: Mapping[str, Opinion]) -> Iterator[str]:
    for name, opinion in heard.items():
        for note in opinion.notes:
            yield f"{name}: {note}"


def _nearest(heard: Mapping[str, Opinion], percent: float) -> str:
    """Return the explanation of the member that is nearest to the panel's percent, of those that explain."""
    explained = [opinion for opinion in heard.values() if opinion.explanation]
    if explained:
        return min(
            explained, key=lambda opinion: abs(opinion.percent - percent)
        ).explanation
    return ""


def _spread(heard: Mapping[str, Opinion]) -> float:
    if len(heard) > 1:
        return float(np.std([opinion.percent for opinion in heard.values()], ddof=1))
    return math.nan


def _left_out(
    names: Sequence[str], percents: Matrix, staying: Sequence[int], place: int
) -> str:
    """Why a member is asked no more, for the report."""
    column = percents[:, place]
    scores = column[np.isfinite(column)]
    if 2 * len(scores) < len(column):
        return f"it scored {len(scores)} of {len(column)} rows"
    if np.ptp(scores) == 0:
        return f"it gives every row {scores[0]:.0f}%"
    correlations = {
        member: correlation(percents[:, member], column)
        for member in staying
        if member < place
    }
    like = max(
        correlations, key=lambda member: float(np.nan_to_num(correlations[member]))
    )
    return f"{names[like]} says the same (correlation {correlations[like]:.2f})"


def _in_words(
    names: Sequence[str],
    percents: Matrix,
    places: Sequence[int],
    failed: Mapping[str, int],
    weights: Any,
) -> str:
    """The outcome for the members, for the report."""
    members = [names[place] for place in places]
    parts_ = [f"the mean of {counted(len(places), 'standardised member')} judges"]
    if not np.allclose(weights, 1.0, atol=TOLD):
        shares = zip(places, (weights / weights.sum()).tolist(), strict=True)
        parts_.append(
            "weighed by the labels: "
            + ", ".join(f"{names[place]} {share:.2f}" for place, share in shares)
        )
    for place in sorted(set(range(len(names))) - set(places)):
        why = _left_out(names, percents, places, place)
        parts_.append(f"{names[place]} is left out, since {why}")
    parts_ += [
        f"{name} gave no score on {count} rows"
        for name, count in failed.items()
        if count and name in members
    ]
    return "; ".join(parts_)
