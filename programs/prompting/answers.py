"""Reading scores and criteria out of what models really write.

An answer in the asked form is read as it is. One with marks around it, or a bare number, is repaired and marked.
Anything else is a problem that says what was wrong: the caller asks once more and then gives up with NaN. Nothing here
guesses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Any

from judgesmith.programs.models.transport import Reply, TokenChoice
from judgesmith.programs.prompting.forms import Form
from judgesmith.programs.prompting.json_answers import (
    json_parts,
    lenient_json,
    unfenced,
)
from judgesmith.programs.prompting.stated import (
    Stated,
    moved,
    stated_scores,
    stated_value,
)
from judgesmith.signatures.values import Criterion, CriterionScore, Scale

#: The share of probability on a scale's digits below which their expectation is not taken.
LOWEST_MASS = 0.1
EXPLANATION = re.compile(
    r"""(?:explanation|reason(?:ing)?|justification)["'*_`]*\s*[:=-]\s*["'*_`]*""", re.I
)


@dataclass(frozen=True, slots=True)
class Read:
    """The values of an answer's fields, or the problem with it."""

    values: dict[str, Any]
    repaired: bool = False
    problem: str | None = None
    notes: tuple[str, ...] = ()
    final: bool = False
    """Asking again would not help."""


@dataclass(frozen=True, slots=True)
class ReadScore:
    """One score in [0, 100] as `said` and, with log-probabilities, as `expected`; NaN and a `problem` otherwise.

    mass: the share of probability on the scale's digits at the score's place.
    """

    said: float = math.nan
    expected: float = math.nan
    mass: float = math.nan
    explanation: str = ""
    repaired: bool = False
    problem: str | None = None


def token_at(reply: Reply, start: int) -> TokenChoice | None:
    """Return the token that holds character `start` of the answer; None if it cannot be told."""
    return next(iter(tokens_from(reply, start)), None)


def tokens_from(reply: Reply, start: int) -> tuple[TokenChoice, ...]:
    """Return the tokens from the one that holds character `start` of the answer; none if it cannot be told."""
    if reply.tokens is None:
        return ()
    rest = reply.text[start:]
    spoken = "".join(t.text for t in reply.tokens)
    if not spoken.startswith(reply.text[: start + 1]):
        # Tokens that are parts of one character, or a text that was stripped: what comes after may still fit.
        if not spoken.endswith(rest):
            return ()
        start = len(spoken) - len(rest)
    place = 0
    for number, token in enumerate(reply.tokens):
        after = place + len(token.text)
        if place <= start < after:
            return reply.tokens[number:]
        place = after
    return ()


def expectation(reply: Reply, start: int, scale: Scale) -> tuple[float, float]:
    """Return the mean score in [0, 100] over the one-digit numbers of `scale` at character `start`, and their share.

    The share is the probability on them. Surface forms of a digit (with or without a leading space) are added up. (NaN,
    0) if the reply has no log-probabilities there or the number is not one digit.
    """
    token = None if start < 0 else token_at(reply, start)
    if (
        token is None
        or len(token.text.strip()) != 1
        or re.match(r"\d|\.\d", reply.text[start + 1 :])
    ):
        return math.nan, 0.0
    place, mass = _mean(_shares((token,), _digits(scale), 0))
    return scale.to_percent(scale.low + place), mass


def share_of_words(
    reply: Reply, start: int | None, words: Sequence[str]
) -> tuple[float, float]:
    """Return the mean place (0, 1, …) among `words` by their probabilities at character `start`, and their share.

    The share is the probability on them. Where words have their first token in common, the tokens of the answer's own
    word tell them apart; of others in common the one nearest to that word counts. (NaN, 0) without log-probabilities
    there.

    >>> tokens = TokenChoice("Far", (("Far", -0.7), ("So", -0.7))), TokenChoice(" up", ((" up", 0.0),))
    >>> mean, share = share_of_words(Reply("Far up", tokens), 0, ["Far down", "So so", "Far up"])
    >>> round(mean, 3), round(share, 3)
    (1.5, 0.993)
    """
    if start is None:
        return math.nan, 0.0
    text = reply.text[start:].lower()
    choices = tuple(word.lower() for word in words)
    own = (place for place, word in enumerate(choices) if text.startswith(word))
    return _mean(_shares(tokens_from(reply, start), choices, next(own, 0)))


def _mean(shares: Iterable[tuple[int, float]]) -> tuple[float, float]:
    """Return the mean of places by their probabilities, and the sum of these."""
    weights: dict[int, float] = {}
    for place, share in shares:
        weights[place] = weights.get(place, 0.0) + share
    mass = sum(weights.values())
    if mass > 0.0:
        return (sum(v * w for v, w in weights.items()) / mass, min(mass, 1.0))
    return (math.nan, 0.0)


def _shares(
    tokens: Sequence[TokenChoice], words: tuple[str, ...], own: int
) -> Iterator[tuple[int, float]]:
    """Yield places among words with their probabilities, along an answer's tokens as far as they leave words open.

    own: the place of the answer's own word.
    """
    begun = ""
    share = 1.0
    for token in tokens:
        if not token.alternatives:
            break
        spoken = _continued(begun, token.text, words)
        further = 0.0
        for text, logprob in token.alternatives:
            places = _continued(begun, text, words)
            part = share * math.exp(min(logprob, 0.0))
            if len(places) > 1 and places == spoken:
                further += part
            elif places:
                yield min(places, key=lambda place: abs(place - own)), part
        if not further:
            return
        begun = _joined(begun, token.text)
        share = further
    if begun:
        yield own, share


def _joined(begun: str, text: str) -> str:
    return begun + (text.rstrip() if begun else text.strip()).lower()


@lru_cache(maxsize=4096)
def _continued(begun: str, text: str, words: tuple[str, ...]) -> tuple[int, ...]:
    """Return the places of the words that a token's text continues."""
    piece = _joined(begun, text)
    fits = [i for i, word in enumerate(words) if word.startswith(piece)]
    return tuple(fits) if piece != begun else ()


@lru_cache(maxsize=64)
def _digits(scale: Scale) -> tuple[str, ...]:
    return tuple(map(str, range(int(scale.low), min(9, int(scale.high)) + 1)))


def read_overall(reply: Reply, scale: Scale, fits: Callable[[str], bool]) -> ReadScore:
    """Read the overall score of an answer.

    Args:
        reply: The answer.
        scale: The scale of its number.
        fits: Returns True for an answer in the prompt's form, which needs no repair.
    """
    text = reply.text
    cut = " (cut off at the token limit)" if reply.ending == "limit" else ""
    if not text.strip():
        return ReadScore(problem=f"the answer is empty{cut}")
    scores = stated_scores(text)
    if not scores:
        return ReadScore(problem=f"no score in the answer{cut}: {_short(text)}")
    if any(_cut(reply, stated, scale) for stated in scores):
        return ReadScore(
            problem=f"the score may be cut off at the token limit: {_short(text)}"
        )
    value, problem = _agreed(scores, scale)
    if problem:
        return ReadScore(problem=f"{problem}: {_short(text)}")
    first = scores[0]
    expected, mass = expectation(reply, first.digits[0], scale)
    if mass < LOWEST_MASS:
        expected = math.nan
    return ReadScore(value, expected, mass, _explanation(text, first), not fits(text))


def read_criteria(
    reply: Reply,
    scale: Scale,
    criteria: Sequence[Criterion],
    form: Form,
    *,
    expected: bool,
    explained: bool,
) -> Read:
    """Read the scores of several criteria, by name as `criteria_scores`; a problem if fewer than half are readable.

    They stand as `Name: explanation` and `Score: 4`, on one line or two.

    Args:
        reply: The answer.
        scale: The scale of its numbers.
        criteria: The criteria.
        form: The prompt's form.
        expected: True to take expectations over tokens.
        explained: True if explanations are needed.
    """
    text = reply.text
    if not text.strip():
        return Read({}, problem="the answer is empty")
    scores: dict[str, CriterionScore] = {}
    for name, (stated, why) in (
        _keyed(text, criteria) or _sectioned(text, criteria)
    ).items():
        value, problem = _agreed(stated, scale)
        if problem or _cut(reply, stated[0], scale):
            continue
        if expected:
            mean, mass = expectation(reply, stated[0].digits[0], scale)
            value = mean if mass >= LOWEST_MASS else value
        scores[name] = CriterionScore(value, why if explained else "")
    missing = [c.name for c in criteria if c.name not in scores]
    if 2 * len(missing) > len(criteria):
        return Read({}, problem=f"no score for {', '.join(missing)}: {_short(text)}")
    # In the criteria's own order, so that equal answers give equal artifacts.
    ordered = {c.name: scores.get(c.name, CriterionScore(math.nan)) for c in criteria}
    notes = (f"no score could be read for {', '.join(missing)}",) if missing else ()
    return Read(
        {"criteria_scores": ordered},
        bool(missing) or not form.fits(text, between=r"\s+"),
        notes=notes,
    )


#: Labels of a score of the whole, which ends what is said of the last criterion.
_OF_ALL = ("overall score", "overall rating", "overall")


def _sectioned(
    text: str, criteria: Sequence[Criterion]
) -> dict[str, tuple[list[Stated], str]]:
    """Return the scores stated behind each criterion's name, and the explanation."""
    names = {c.name: c.name for c in criteria}
    labels = dict(names)
    if "verall" in text:
        folded = set(map(str.casefold, names))
        labels |= {label: label for label in _OF_ALL if label not in folded}
    sections = {}
    for name, (start, end) in _sections(text, labels).items():
        segment = text[start:end]
        scores = stated_scores(segment) if name in names else []
        if scores:
            why = _explanation(segment, scores[0])
            sections[name] = ([moved(score, start) for score in scores], why)
    return sections


def _keyed(
    text: str, criteria: Sequence[Criterion]
) -> dict[str, tuple[list[Stated], str]]:
    """Return the same of an answer in JSON; empty for another answer.

    Forms are {"Tone": 4}, {"Tone": {"score": 4, "explanation": …}}, or a list of objects with names.
    """
    names = {_key(c.name): c.name for c in criteria}
    scores: dict[str, tuple[list[Stated], str]] = {}
    for key, value in chain.from_iterable(map(_pairs, json_parts(text))):
        name = names.get(_key(key))
        if name is not None and name not in scores:
            stated = stated_value(value)
            why = _why_in(value) if isinstance(value, dict) else ""
            scores[name] = ([replace(stated, digits=_place(text, key, stated))], why)
    return scores


def _why_in(entry: Mapping[str, Any]) -> str:
    """Return the explanation in a criterion's object; "" for none."""
    for label in _WHY:
        if isinstance(words := entry.get(label), str):
            return " ".join(words.split())
    return ""


#: Keys of an explanation, and of a criterion's name in a list.
_WHY = ("explanation", "reason", "reasoning", "justification")
_NAME = ("name", "criterion", "aspect")


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()


def _pairs(data: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Names with what stands under them, the outermost first."""
    if isinstance(data, list):
        for entry in data:
            if isinstance(entry, dict):
                named = next((entry[key] for key in _NAME if key in entry), None)
            else:
                named = None
            if isinstance(named, str):
                yield named, entry
    elif isinstance(data, dict):
        yield from data.items()
        for value in data.values() if depth < 2 else ():
            yield from _pairs(value, depth + 1)


def _place(text: str, key: str, stated: Stated) -> tuple[int, int]:
    """Return the place of the number under a key in JSON; (-1, -1) if it cannot be told."""
    begins = re.search(rf'"{re.escape(key)}"\s*:', text)
    if begins is None or not stated.words:
        return -1, -1
    number = rf"\s*\"?({re.escape(stated.words)})(?![\w.])"
    direct = re.compile(number).match(text, begins.end())
    inner = direct or re.compile(rf'"(?:score|rating|value)"\s*:{number}').search(
        text, begins.end()
    )
    return inner.span(1) if inner else (-1, -1)


def read_reasons(text: str, criteria: Sequence[Criterion]) -> dict[str, str]:
    """Explanations by criterion from lines `Why Name: …`, in the order of the text."""
    places = _sections(text, {c.name: f"Why {c.name}" for c in criteria})
    return {
        name: " ".join(text[start:end].split()).strip(" \"'*_`")
        for name, (start, end) in places.items()
    }


def _sections(text: str, labels: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Return the places of the texts behind labels at the beginning of a line, by the labels' keys.

    They are in the order of the text, each up to the next label.
    """
    places = []
    for key, label in labels.items():
        if match := _section(label).search(text):
            places.append((match.start(), match.end(), key))
    places.sort()
    ends = [*(start for start, _, _ in places[1:]), len(text)]
    return {
        key: (begin, end) for (_, begin, key), end in zip(places, ends, strict=False)
    }


@lru_cache(maxsize=512)
def _section(label: str) -> re.Pattern[str]:
    """A label at the beginning of a line or of a table's row, with its colon, or as a heading."""
    spaced = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", label)))
    heading = rf"^#+[ \t]*+[*_]*{spaced}[*_]*[ \t]*+$"
    beginning = rf"^(?:[^\w\n]|[\d_])*{spaced}(?:[ \t]+(?:score|rating))?[\"'*_`]*+\s*+[:：={{|-]"
    return re.compile(f"{beginning}|{heading}", re.IGNORECASE | re.MULTILINE)


#: "Name: definition" on a line, with marks around it.
_LISTED = re.compile(
    r"^(?:[-*•\d.)]+[ \t]+)?[\"'*_`]*([^\W\d_][^:：*_`\"\n]{1,48}?)[\"'*_`]*[ \t]*(?:：|[:–-][\"'*_`]*[ \t]+)(.+)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Drawn(Criterion):
    """A criterion with the numbers of the comments that a model says it comes from; they need not exist."""

    comments: tuple[int, ...] = ()


def read_criteria_list(text: str, *, most: int = 10) -> list[Drawn]:
    """Criteria from a JSON list of {name, definition}, a JSON object {name: definition}, or lines `Name: definition`.

    Duplicates by name are dropped; at most `most` are kept; an empty list where nothing could be read.
    """
    body = unfenced(text)
    listed = [(*pair, None) for pair in _LISTED.findall(body)]
    criteria: dict[str, Drawn] = {}
    for name, meaning, cited in _entries_of(body) or listed:
        if not (isinstance(name, str) and isinstance(meaning, str)):
            continue
        name = " ".join(re.sub(r"[\"'*_`:#{}\[\]<>|]", " ", name).split())[:48]
        meaning = " ".join(meaning.strip(" \"'*_`").split())[:300]
        worded = re.search(r"[A-Za-z\u00c0-\uffff]", name) and meaning
        if worded and name.casefold() not in criteria:
            numbers = map(int, re.findall(r"\d{1,6}", str(cited or "")))
            drawn = Drawn(name, meaning, tuple(dict.fromkeys(numbers)))
            criteria[name.casefold()] = drawn
    return list(criteria.values())[:most]


def _entries_of(body: str) -> list[tuple[Any, Any, Any]]:
    """(name, definition, comments) of each criterion of an answer in JSON; none for another answer."""
    starts = [place for place in (body.find("{"), body.find("[")) if place >= 0]
    data = lenient_json(body[min(starts) :]) if starts else None
    if isinstance(data, dict):
        named = [
            {"name": name, "definition": meaning} for name, meaning in data.items()
        ]
        data = [data] if "definition" in data else data.get("criteria", named)
    entries = list[tuple[Any, Any, Any]]()
    for entry in data if isinstance(data, list) else ():
        if isinstance(entry, dict):
            name = entry.get("name")
            meaning = entry.get("definition")
            entries.append((name, meaning, entry.get("comments")))
    return entries


def _on_scale(stated: Stated, scale: Scale) -> float | None:
    """Return a stated number in [0, 100]; None off the scale.

    Also None for one said to be of another scale ("8/10" on 1..5), and for a fraction that may be a share ("0.8" on
    0..100).
    """
    value = stated.number
    other = stated.top is not None and stated.top != scale.high
    share = (
        scale.low <= 0 and scale.high >= 10 and 0 < value <= 1 and "." in stated.words
    )
    if (
        other
        or share
        or (stated.percent and scale.high != 100)
        or not scale.low <= value <= scale.high
    ):
        return None
    return scale.to_percent(value)


def _agreed(scores: Sequence[Stated], scale: Scale) -> tuple[float, str]:
    """The one score in [0, 100] of several statements, or NaN and the problem."""
    unread = next((stated for stated in scores if math.isnan(stated.number)), None)
    if unread is not None:
        return math.nan, f"the score cannot be read: {_short(unread.words, 40)}"
    values = {_on_scale(stated, scale) for stated in scores}
    if None in values:
        return math.nan, _misfit(
            next(stated for stated in scores if _on_scale(stated, scale) is None), scale
        )
    if len(values) > 1:
        return math.nan, f"{len(values)} different scores in one answer"
    (value,) = values
    assert value is not None
    return value, ""


def _misfit(stated: Stated, scale: Scale) -> str:
    """Why a number is no score of the scale."""
    if stated.top is not None and stated.top != scale.high:
        return f"the score {stated.words} of {stated.top:g} is of another scale than {scale}"
    if stated.percent and scale.high != 100:
        return f"the score {stated.words}% is of another scale than {scale}"
    if not scale.low <= stated.number <= scale.high:
        return f"the score {stated.words} is outside {scale}"
    return f"the score {stated.words} may be a share of 1 or one on {scale}"


#: What shows that a number was over before an answer was cut off: its line ended, its object, or its sentence.
_OVER = re.compile(r"\n|[}\]]|[,;.!?:)][^\d]")


def _cut(reply: Reply, stated: Stated, scale: Scale) -> bool:
    """Return True if a number may lack its last digits: "Score: 8" at the token limit can be the start of 85."""
    if reply.ending == "whole" or scale.high < 10:
        return False
    end = stated.digits[1]
    return end < 0 or _OVER.search(reply.text, end) is None


def _explanation(text: str, score: Stated) -> str:
    """The explanation of an answer: behind its label, before or after the score."""
    if score.explanation is not None:
        return score.explanation
    before = text[: score.start]
    after = text[score.end :]
    label = EXPLANATION.search(before)
    if label:
        words = before[label.end() :]
    elif label := EXPLANATION.search(after):
        words = after[label.end() :]
    else:
        words = before if re.search(r"\w{3}", before) else after
    return " ".join(words.split()).rstrip(" \"'*_`{}[],:|-").lstrip(" \"'*_`{}[],:|/-")


def _short(text: str, most: int = 120) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= most else text[: most - 1] + "…")


def bare(answer: str) -> str:
    """Return an answer without tags, quotation marks or an introduction around it."""
    text = answer.strip()
    tag = re.match(r"<(\w+)>", text)
    if tag and text.endswith(closing := f"</{tag[1]}>"):
        text = text[tag.end() : -len(closing)].strip()
    text = re.sub(
        r"^(?:here is|here's|sure|certainly)\b[^\n]{0,80}:\s*",
        "",
        text,
        flags=re.IGNORECASE,
    )
    for opening, closing in (('"', '"'), ("“", "”")):
        inside = text[1:-1]
        if (
            len(text) > 2
            and text[0] == opening
            and text[-1] == closing
            and opening not in inside
        ):
            text = inside
    return text.strip()
