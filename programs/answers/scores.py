"""What score does an answer state?

The first step that finds one settles it. Each is a function below, in this order:

    in_json               {"score": 4}                            also in a fence, in a string, or broken
    in_table              | Score | 4 |
    labelled              Score: 4                                also `**Overall rating** = 4/5`, `[[4]]`
    otherwise_labelled    Bewertung: 4
    alone                 4/5
    in_attribute          <evaluation score="4">
    in_introduced_json    My verdict is {"score": 4}. Ask away.
    of_an_aspect          Fluency score: 4
    in_a_sentence         I give it a 4.
    beside_its_reason     4 - It is kind.

The labelled line is the verdict. A number that is mentioned inside a sentence ("a rash rating: 20 would be wrong") is
none, and where the line of the verdict cannot be read, nothing else in the answer is taken in its place.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judgesmith.programs.answers.objects import introduced, json_parts, unwrapped


@dataclass(frozen=True, slots=True)
class Stated:
    """A score as an answer states it.

    number: NaN for an unreadable one. start, end: its place in the answer, from label to last mark; digits: the place
    of its number, (-1, -1) if that is not known. top: the top of the scale that it names. explanation: the one that
    stands with it, if the answer is JSON.
    """

    number: float
    start: int = 0
    end: int = 0
    digits: tuple[int, int] = (-1, -1)
    top: float | None = None
    percent: bool = False
    explanation: str | None = None
    words: str = ""
    """The number as it stands there."""


def moved(stated: Stated, by: int) -> Stated:
    """Return the same, with its digits' place in a text that begins `by` characters earlier."""
    begin, end = stated.digits
    return replace(stated, digits=(begin + by, end + by)) if begin >= 0 else stated


def stated_scores(text: str) -> list[Stated]:
    """Return the scores that an answer states, all of equal standing; none if it states none.

    One of them is NaN if a verdict is there and cannot be read.
    """
    for step in STEPS:
        scores = step(text)
        if scores is not None:
            return scores
    return []


# --- a number with what belongs to it ---------------------------------------------------------------------------------

_ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORDS = {
    **{word: number for number, word in enumerate(("zero", *_ONES, *_TEENS))},
    **{word: 10 * number for number, word in enumerate(_TENS, 2)},
    "a hundred": 100,
    "one hundred": 100,
}
#: Single signs that are a number: raised, lowered, in circles, Chinese.
_SIGNS = "²³¹⁰⁴-⁹₀-₉①-⑳❶-❿➀-➓㊀-㊉〇一二三四五六七八九十"
_NUMBER = rf"""(?P<number>[-+]?\d+(?:\.\d+)?(?:\ufe0f?\u20e3)?|[{_SIGNS}]
    |(?:one|a)\ hundred\b|(?:{"|".join(_TENS)})(?:[-\ ](?:{"|".join(_ONES)}))?\b|(?:{"|".join(_WORDS)})\b)"""
#: Marks around a number, those of LaTeX and of boxes among them.
_BEFORE = (
    r"""(?:[^\S\n]|["'“”„*_`(\[{$]|\\[(\[]|\\+(?:boxed|text|mathbf)\s?\{){0,12}+"""
)
_AFTER = r"""(?:["'”*_`)\]}$]|\\[)\]])*+"""
#: A number with what belongs to it: the top of its scale, a percentage sign, a unit, a closing tag. Never the beginning
#: of a longer number ("4,5", "8 0", "1_00"), of a range, or of a bound ("80+").
_VALUE = rf"""{_BEFORE}{_NUMBER}
    (?![^\W分点점]|½|[.,:]\d|[^\S\n]\d|[^\S\n]*on\ a\ scale)
    (?![^\S\n]*(?:[-–—~]|\bto\b|\bor\b|\band\b)[^\S\n]*(?:an?\b[^\S\n]*)?\d)
    {_AFTER}(?:[^\S\n]*+\(?(?:/|\b(?:out\ of|of|von|sur|de|su|van|av|из)\b)\s*["'*_`(\[]*
        (?P<top>\d+(?:\.0+)?)(?![\w.,]\d))?
    (?:[^\S\n]*(?P<percent>[%％]))?{_AFTER}
    (?:[^\S\n]*(?:points?|pts|stars?|marks?|Punkte|分|点|점)(?!\w))?(?:[^\S\n]*/?>|</[\w:]{{1,20}}>)?{_AFTER}"""
#: What may follow a value on its line: nothing but marks; or the next sentence.
_ENDS = r"(?=(?:[^\w\n+~^=<±≈≤≥°?\u202a-\u202e%％-]|_(?!\w)|[ \t]-)*(?:\n|\Z))"
_BEGUN = r"(?:because|since|as\ it|explanation:|reason(?:ing)?:|why:)"
_GOES_ON = (
    rf"(?=[\s]*(?:[,;:(|–—}}]|-[ \t]|[.!。](?:\s|\Z)|[ \t]{_BEGUN}(?!\w))(?![ \t]*\d))"
    # None of several with their names behind them: "2 (fluency), 4 (facts)".
    r"(?![ \t]*\([^()\n]{0,80}\)[ \t]*(?:[,;/&]|\band\b)?[ \t]*[*_`]*\d+(?:\.\d+)?[*_`]*[ \t]*(?:\(|$|\n))"
)
_COMPLETE = re.compile(
    rf"{_VALUE}(?:(?P<ends>{_ENDS})|{_GOES_ON})", re.IGNORECASE | re.VERBOSE
)
_ALL = re.compile(
    rf"\A\s*+(?:[^\w.+<>~=±≈≤≥$\\-]|_|[-+.](?!\d)){{0,12}}+{_VALUE}{_ENDS}\W*\Z",
    re.IGNORECASE | re.VERBOSE,
)


def _stated(match: re.Match[str], start: int) -> Stated:
    """A number that `_VALUE` matched, with its label from `start` on."""
    return Stated(
        _number(match["number"]),
        start,
        match.end(),
        match.span("number"),
        float(match["top"]) if match["top"] else None,
        bool(match["percent"]),
        words=match["number"].strip(),
    )


def _placed(match: re.Match[str], by: int) -> Stated:
    """A number in a part of a text that begins `by` characters after it does."""
    stated = _stated(match, 0)
    return moved(replace(stated, start=by, end=by + match.end()), by)


def _number(words: str) -> float:
    """A number in digits, as one sign, or as an English word."""
    words = words.rstrip("\ufe0f\u20e3").casefold()
    if words in _WORDS:
        return float(_WORDS[words])
    tens, _, ones = words.replace("-", " ").partition(" ")
    if ones in _ONES:
        return float(_WORDS[tens] + _WORDS[ones])
    try:
        return float(words)
    except ValueError:
        return unicodedata.numeric(words)


# --- its labels -------------------------------------------------------------------------------------------------------

_NAMES = r"score|rating"
#: Other words for it: looked for only where the asked ones are not there.
_OTHERS = (
    r"final\ answer|answer|verdict|grade|overall|评分|得分|分数|評分|スコア|評価|点数|점수|평점|bewertung|note|"
    r"punktzahl|puntuación|puntaje|calificación|pontuação|nota|punteggio|voto|valutazione|оценка|балл|ocena|beoordeling|cijfer|"
    r"betyg|karakter|puan|الدرجة|التقييم|النتيجة|अंक|स्कोर|"
    r"ציון|דירוג|คะแนน|điểm(?:\ số)?|امتیاز|نمره|اسکور|স্কোর|নম্বর|skor|nilai|оцінка|бал|hodnocení|hodnotenie|skóre|"
    r"pontszám|értékelés|scor|notă|punctaj|βαθμολογία|βαθμός|σκορ|pisteet|arvosana|poäng|poeng|vurdering|резултат|"
    r"ocjena|மதிப்பெண்|స్కోరు?|സ്കോർ|ಸ್ಕೋರ್|સ્કોર|ਸਕੋਰ|गुण|alama|iskor|marka|ქულა|գնահատական|միավոր|балл|ұпай|"
    r"įvertinimas|vērtējums|hinne|puntuació|puntuazioa|einkunn|scór|оноо|ලකුණු|ពិន្ទុ|ຄະແນນ|အမှတ်"
)
_SEPARATOR = (
    r"""(?:\s*+\([^)\n]{0,80}\))?["'*_`]*\s*+(?P<sign>[:：=>–-]|is\b|\bvalue\s?=)"""
)


def _label(names: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{names}){_SEPARATOR}", re.IGNORECASE | re.VERBOSE)


_LABEL = _label(_NAMES)
_OTHER_LABEL = _label(_OTHERS)


# --- in JSON ----------------------------------------------------------------------------------------------------------

_SCORE_KEY = re.compile(
    r"(?:(?:overall|final|total)[_ -]?)?(?:score|rating)", re.IGNORECASE
)
_REASON_KEY = re.compile(r"explanation|reason(?:ing)?|justification|why", re.IGNORECASE)
#: Keys under which a score's own object holds its number.
_INNER = ("value", "score", "rating", "number")
_DEEPEST = 6


def in_json(text: str) -> list[Stated] | None:
    """Read the scores of an answer in JSON; None for another answer, and for JSON without a score."""
    if "{" not in text and "[" not in text and "\\" not in text:
        return None
    return _scores_in(json_parts(text), text)


def in_introduced_json(text: str) -> list[Stated] | None:
    """Read the score of the one object that a sentence introduces."""
    return _scores_in(introduced(text))


def _scores_in(parts: Sequence[Any], text: str = "") -> list[Stated] | None:
    """The scores of objects and lists, with their places in the text where these can be told."""
    scores = [stated for data in parts for stated in _scores(data, 0)]
    if not scores:
        return None
    placed: dict[float, Stated] = {}
    for label in _LABEL.finditer(text):
        value = _COMPLETE.match(text, label.end()) if label["sign"] == ":" else None
        if value is not None:
            stated = _stated(value, label.start())
            placed.setdefault(stated.number, stated)
    for place, score in enumerate(scores):
        if score.number in placed:
            labelled = placed[score.number]
            scores[place] = replace(labelled, explanation=score.explanation)
    equal = len({score.number for score in scores}) == 1
    return scores[:1] if equal else scores


def _scores(data: Any, depth: int) -> Iterator[Stated]:
    """The scores under keys that name them, from the outside in."""
    if depth > _DEEPEST:
        return
    if isinstance(data, list):
        for entry in data:
            yield from _scores(entry, depth + 1)
    if not isinstance(data, dict):
        return
    keyed = [value for key, value in data.items() if _SCORE_KEY.fullmatch(key)]
    reasons = [
        " ".join(value.split())
        for key, value in data.items()
        if _REASON_KEY.fullmatch(key) and isinstance(value, str)
    ]
    explanation = reasons[0] if reasons else None
    for value in keyed:
        yield replace(stated_value(value), explanation=explanation)
    if not keyed:
        for value in data.values():
            yield from _scores(unwrapped(value), depth + 1)


def stated_value(value: Any) -> Stated:
    """Read a score that is the value of a key: a number, a text such as "4/5", or an object around one of them."""
    if isinstance(value, dict):
        held = [value[key] for key in _INNER if key in value]
        value = held[0] if len(held) == 1 else None
    if type(value) in (int, float):
        return Stated(float(value), words=str(value))
    match = _ALL.match(value.strip()) if isinstance(value, str) else None
    if match is None:
        return Stated(math.nan, words=str(value)[:60])
    return replace(_stated(match, 0), end=0, digits=(-1, -1))


# --- in a table -------------------------------------------------------------------------------------------------------

_IN_CELL = r"[\s*_`\"':#]*"
_COLUMN = re.compile(
    rf"{_IN_CELL}(?:(?:overall|final|total)\ )?(?:{_NAMES}|{_OTHERS}){_IN_CELL}",
    re.IGNORECASE | re.VERBOSE,
)
_OF_WHOLE = re.compile(
    rf"{_IN_CELL}(?:overall|total|final)(?:\ (?:{_NAMES}))?{_IN_CELL}",
    re.IGNORECASE | re.VERBOSE,
)
_ROW = re.compile(r"^[ \t]*\|?[^|\n]*\|.*$", re.MULTILINE)
_CELL = re.compile(r"[^|\n]+")
_RULE = re.compile(r"[\s:-]+")


def in_table(text: str) -> list[Stated] | None:
    """Read the score of a table: its only row's in the column of scores, else that of the row of the whole.

    Or the cell behind one that says "Score".
    """
    if "|" not in text:
        return None
    rows = [
        [cell for cell in _CELL.finditer(text, *row.span()) if cell[0].strip()]
        for row in _ROW.finditer(text)
    ]
    rows = [row for row in rows if not all(_RULE.fullmatch(cell[0]) for cell in row)]
    if not rows:
        return None
    head, *below = rows
    for place, cell in enumerate(head):
        if not below or not _COLUMN.fullmatch(cell[0]):
            continue
        held = [row for row in below if len(row) == len(head)]
        of_whole = [row for row in held if _OF_WHOLE.fullmatch(row[0][0])]
        picked = held if len(held) == 1 else of_whole
        if found := _in_cells([row[place] for row in picked]):
            return found
    named = [row[1] for row in rows if len(row) > 1 and _COLUMN.fullmatch(row[0][0])]
    return _in_cells(named) or None


def _in_cells(cells: Sequence[re.Match[str]]) -> list[Stated]:
    numbers = [(_ALL.match(cell[0]), cell.start()) for cell in cells]
    return [_placed(number, place) for number, place in numbers if number]


# --- behind a label ---------------------------------------------------------------------------------------------------

_ANOTHERS = (
    r"not|first|second|one|another|other|initial|previous|draft|rash|early|human|people|person|reader|user|expert|"
    r"average|reference|typical|careless|low|high|old|possible"
)
#: A label that has its line to itself, as a heading does, with the number on the next one; or the number alone behind.
_HEADING = re.compile(
    rf"^[^\w\n]*+(?:(?:overall|final|total)[ ])?(?:{_NAMES})(?:[^\w\n]*$\n\s*+(?=\S)|[ \t]++(?=\d))",
    re.IGNORECASE | re.MULTILINE,
)
#: What may stand before a label that begins its line, or its sentence.
_OWN = r"(?:(?:the|my|your|overall|final|total|average)\W{1,4}){0,3}\Z"
_BEGINS_LINE = re.compile(
    rf"\A(?:[^\w\n]|_)*+(?:\d{{1,2}}[.)](?:[^\w\n]|_)*+)?{_OWN}", re.IGNORECASE
)
_NEXT_LINE = re.compile(r"(?:[^\S\n]|[*_`])*+\n\s*+")
_NAMED = re.compile(r"\b(?:the|my|your)\b", re.IGNORECASE)
_BEGINS_SENTENCE = re.compile(
    rf"""[.!?;:|,}}>)\]。！？；：，]["'”*_`)\]]*+[\s"'“*_`({{\[<#>\\–-]*+{_OWN}""",
    re.IGNORECASE,
)
#: What a label on whose line it is not alone may be a verdict for, if it cannot be read.
_BEGINS_NUMBER = re.compile(r"\s*+[-+]?\d")
#: Before a label that takes an earlier verdict back.
_CORRECTS = re.compile(
    r"\b(?:wait|actually|correction|corrected|revised|rather|instead|sorry|but)\b[^.!?\n]{0,30}\Z",
    re.IGNORECASE,
)
#: Before a label that corrects nothing, "but the user's score: 5", with at most one word between.
_OF_ANOTHER = re.compile(
    rf"\b(?:{_ANOTHERS})\b(?:['’]s)?(?:[ ]+\w+)?[^\w\n,;:.!?]*\Z", re.IGNORECASE
)
_BOX = re.compile(
    rf"(?:(?<![\\{{])\\{{1,4}}boxed\s?\{{|(?<!\[)\[\[(?!\[)){_VALUE}",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Mention:
    """A label with what stands behind it. rank: 0 a line of its own, 1 at the beginning of a line, 2 of a sentence."""

    stated: Stated
    rank: int


def labelled(text: str) -> list[Stated] | None:
    """Read the numbers behind "score" or "rating", those of the best rank, and those in boxes where they differ."""
    scores = _best(_mentions(text, _LABEL))
    boxes = _BOX.finditer(text) if "[[" in text or "boxed" in text else ()
    boxed = [_stated(match, match.start()) for match in boxes]
    if boxed and (not scores or scores[0].number != boxed[-1].number):
        scores += boxed
    return scores or None


def otherwise_labelled(text: str) -> list[Stated] | None:
    """Read the numbers on lines with other words for a score, of other languages, too.

    Such words mean other things as well: one without a number behind it says nothing, but leaves nothing to guess.
    """
    mentions = _mentions(text, _OTHER_LABEL)
    best = _best([mention for mention in mentions if mention.rank < 2])
    if not best:
        return None
    return [stated for stated in best if not math.isnan(stated.number)]


def _best(mentions: Sequence[_Mention]) -> list[Stated]:
    rank = min((mention.rank for mention in mentions), default=0)
    return [mention.stated for mention in mentions if mention.rank == rank]


def _mentions(text: str, label: re.Pattern[str]) -> list[_Mention]:
    """The labels that begin a line or a sentence, each with its number."""
    mentions = []
    for match in label.finditer(text):
        mention = _mention(text, match)
        if mention is not None:
            mentions.append(mention)
    for match in _HEADING.finditer(text):
        value = _COMPLETE.match(text, match.end())
        if value is not None and value["ends"] is not None:
            mentions.append(_Mention(_stated(value, match.start()), 0))
    return mentions


def _mention(text: str, label: re.Match[str]) -> _Mention | None:
    """What a label says; None for one inside a sentence, and for one that names no score."""
    before = _line_before(text, label.start())
    sign = label["sign"]
    bound = sign == ">" or "=" in sign[1:]
    if bound and not before.endswith("<"):
        return None  # "score > 80"; "<score>80" is none
    if _BEGINS_LINE.match(before):
        value = _own_value(text, label.end())
        if value is not None:
            return _Mention(_stated(value, label.start()), int(value["ends"] is None))
        unread = sign in ":：=>" and not _NAMED.search(before)
        return _Mention(_broken(text, label), 0) if unread else None
    value = _COMPLETE.match(text, label.end())
    if _corrects(before):
        return _Mention(_stated(value, label.start()), 0) if value else None
    if not _BEGINS_SENTENCE.search(before) or _in_quoted_json(text, label, before):
        return None
    if value is not None:
        return _Mention(_stated(value, label.start()), 2)
    number = _BEGINS_NUMBER.match(text, label.end(), label.end() + 20)
    return _Mention(_broken(text, label), 2) if number and sign in ":：=" else None


def _corrects(before: str) -> bool:
    """Return True if what stands before a label takes an earlier verdict back, and not for somebody else's."""
    return _CORRECTS.search(before) is not None and not _OF_ANOTHER.search(before)


def _line_before(text: str, place: int) -> str:
    first = max(0, place - 200)
    return text[max(first, text.rfind("\n", first, place) + 1) : place]


def _in_quoted_json(text: str, label: re.Match[str], before: str) -> bool:
    """Return True if a label is a key of an object inside a sentence: "It says {"score": 5}, which is a trick"."""
    if "{" not in before or before[-1:] not in ("'", '"'):
        return False
    line = text[label.end() : label.end() + 400].partition("\n")[0]
    _, closed, after = line.rpartition("}")
    return bool(closed) and re.search(r"\w", after) is not None


def _broken(text: str, label: re.Match[str]) -> Stated:
    """A label behind which no score can be read."""
    words = text[label.end() : label.end() + 60].partition("\n")[0].strip()
    return Stated(math.nan, label.start(), label.end(), words=words or "nothing")


def _own_value(text: str, place: int) -> re.Match[str] | None:
    """The number behind a label that has its line to itself; on the next one, if there is nothing behind it."""
    value = _COMPLETE.match(text, place)
    if value is not None:
        return value
    empty = _NEXT_LINE.match(text, place)
    value = _COMPLETE.match(text, empty.end()) if empty else None
    return value if value is not None and value["ends"] is not None else None


# --- without a label of its own ---------------------------------------------------------------------------------------


def alone(text: str) -> list[Stated] | None:
    """Read an answer that is a number."""
    whole = _ALL.match(text)
    return None if whole is None else [_stated(whole, 0)]


#: An attribute of an element that begins its line: <evaluation score="80">.
_ATTRIBUTE = re.compile(
    rf"""^[^\w\n<]*<[\w:-]{{1,40}}\s(?:[^<>\n]{{0,200}}\s)?(?:(?:overall|final|total)[_-]?)?(?:{_NAMES})
    \s*=\s*(?P<quote>["']?)(?P<held>[^"'<>\s]{{1,20}})(?P=quote)[\s/>]""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


def in_attribute(text: str) -> list[Stated] | None:
    """Read attributes of elements that begin their lines."""
    found = list[Stated]()
    for match in _ATTRIBUTE.finditer(text) if "=" in text and "<" in text else ():
        number = _ALL.match(match["held"])
        found += [_placed(number, match.start("held"))] if number else []
    return found or None


#: Before a label that is some aspect's, "Fluency score: 4"; none of what is put off, or somebody else's.
_OF_ASPECT = re.compile(
    r"\A(?:[^\w\n]|_)*+(?P<words>[^\W\d_][\w-]*(?:[ ][\w&-]+){0,3})[ ]\Z"
)
_NOT_OWN = re.compile(
    rf"\b(?:an?|no|this|that|some|any|lower|higher|better|worse|{_ANOTHERS})\b",
    re.IGNORECASE,
)


def of_an_aspect(text: str) -> list[Stated] | None:
    """Read lines on which some words stand before the label: "Fluency score: 4"."""
    found = list[Stated]()
    for label in _LABEL.finditer(text):
        before = _OF_ASPECT.match(_line_before(text, label.start()))
        if before is None or _NOT_OWN.search(before["words"]):
            continue
        value = _COMPLETE.match(text, label.end())
        if value is not None and value["ends"] is not None:
            found.append(_stated(value, label.start()))
    return found or None


_GIVEN = re.compile(
    rf"""(?:\A|[.!?:\n])[ "'*_`]{{0,9}}I(?P<would>['’]d|\ would)?\s(?:rate|score|grade|give|assign|award)\s
    (?:it|this|the\ \w+)(?:\ (?:output|text|summary|answer|response|reply|one))?(?:\ (?:an?|as|with|at))?
    (?:\ (?:score|rating|grade)\ of)?[ ]{_VALUE}(?:{_ENDS}|{_GOES_ON})""",
    re.IGNORECASE | re.VERBOSE,
)


def in_a_sentence(text: str) -> list[Stated] | None:
    """Read sentences that give a score: "I would give it a 4/5", "I give it a 4"."""
    found = [
        _stated(match, match.start())
        for match in _GIVEN.finditer(text)
        if match["top"] or not match["would"]
    ]
    return found or None


#: A line that is a number's place in a list.
_LISTED = re.compile(r"\s*\d{1,3}[.)]\s*\Z")
#: A number at the beginning of an answer, with its reason behind it on the line.
_REASONED = re.compile(
    rf"\A[\s*_`\"']*+{_VALUE}[ \t]*(?:[:,;|]|[ \t][-–—]|[ \t](?=because|since|as\ ))[ \t]+(?=[^\W\d_])",
    re.IGNORECASE | re.VERBOSE,
)
_NUMBERED_LINE = re.compile(r"^\W*\d", re.MULTILINE)


def beside_its_reason(text: str) -> list[Stated] | None:
    """Read a number that stands alone on the first or the last line of an answer, where no other line is a number.

    Or that begins the answer, with its reason behind it.
    """
    lines = list(re.finditer(r"[^\n]*\S[^\n]*", text))
    bare = [line for line in lines if _ALL.match(line[0])]
    if len(bare) == 1 and bare[0] in (lines[0], lines[-1]):
        (line,) = bare
        number = None if _LISTED.match(line[0]) else _ALL.match(line[0])
        return [_placed(number, line.start())] if number else None
    reasoned = _REASONED.match(text)
    if reasoned and not bare and len(_NUMBERED_LINE.findall(text)) == 1:
        return [_stated(reasoned, 0)]
    return None


#: In their order. A step gives None for an answer that it leaves to the next one.
STEPS: tuple[Callable[[str], list[Stated] | None], ...] = (
    in_json,
    in_table,
    labelled,
    otherwise_labelled,
    alone,
    in_attribute,
    in_introduced_json,
    of_an_aspect,
    in_a_sentence,
    beside_its_reason,
)
