"""Whether a text addresses its judge: a rule-based look at what is judged, so that a score that a text could have moved
is not taken for one that it earned.

Three kinds of signs: control tokens of chat templates and tags that close a prompt's material; invisible writing
(Unicode tags, characters without width inside Latin words, reversed directions); and phrases that give a judge
instructions or a score. Phrases are looked for in the folded text (compatibility forms, invisible characters, case,
white space), in English and, for the commonest requests, in other languages. No model is asked, and time grows with the
text's length. A text *about* such attacks is flagged, too; a request in other words is not.
`experiments/results/discernment.md` has figures of both.

A flagged text is judged without what addresses the judge (`blanked`): delimiters keep an instruction in its place,
but a small model follows it there as well.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

from ...disarming import HIDDEN
from ...signatures.values import Item

_JUDGE = (
    r"(?:graders?|judges?|evaluators?|raters?|scorers?|annotators?|assessors?|ai|llm|language models?|assistants?|"
    r"chatbots?)"
)
_TEXT = r"(?:this|it|the (?:above|following|text|output|answer|response|reply|summary|essay|story|translation))"
_BEST = r"(?:highest|maximum|max|best|top|perfect|full|excellent)"
_MARK = r"(?:scores?|ratings?|marks?|grades?|points?)"
_TELL = r"(?:answer|respond|reply|give|giving|assign|award|return|output|print|rate|score|grade|mark|deserves?)"

_TOKENS = re.compile(
    r"<\s?\|[^|<>\n]{1,40}\|\s?>|<<\s?/?sys\s?>>|"
    r"</?\s?(?:think(?:ing)?|tool_(?:call|response|use)s?|(?:start|end)_of_(?:turn|text|image)|begin_of_text|eot_id|eom_id|bos|eos|"
    r"im_(?:start|end|sep)|end_of_sentence|system|assistant)\s?>|"
    r"<\s?/\s?(?:output|source|context|reference|criteria|examples?|task|instructions?|material)\s?>|"
    r"\[\s?/?\s?(?:inst|system_prompt|available_tools|tool_(?:calls|results|content)|gmask)\s?\]",
)
_NOTE = r"notes?|messages?|attention|instructions?|reminder|hint"
_FORGET = r"ignore[zr]?|ignora|ignori|oublie[zr]?|olvida|dimentica|esqueça|negeer"
_WHO = "grader|judge|evaluator|rater|scorer|annotator|assessor| ai|llm|language model|assistant|chatbot"
_GRANT = r"donne[zr]?|attribue[zr]?|asigna|otorga|dale|assegna|atribua"
#: Phrases, each after the words of which it holds at least one: to look for these first is many times faster.
_PHRASES = tuple(
    (words.split("|"), re.compile(pattern))
    for words, pattern in (
        ("ignore|disregard|forget|override",
         r"\b(?:ignore|disregard|forget|override)\b[^.!?]{0,30}\b(?:instructions?|prompts?|guidelines|rubric|criteria)\b"),
        ("new instruction", r"\bnew instructions?\s?:"),
        ("system ", r"\bsystem (?:message|prompt|override)\s?:"),
        (_WHO, rf"\b(?:{_NOTE}) (?:to|for) (?:the |any |all |every |you,? the )?{_JUDGE}\b"),
        (_WHO, rf"\b(?:dear|hello|hi|hey),? (?!judges?\b){_JUDGE}\b"),
        ("you are ", r"\byou are (?:an? |the )(?:\w+ )?(?:grader|evaluator|rater|scorer|annotator)\b"),
        ("out of|/|highest|max|best|top|perfect|full|excellent",
         rf"\b{_TELL} {_TEXT}\b[^.!?]{{0,30}}\b(?:\d+ ?(?:out of|/) ?\d+|{_BEST}(?: possible)? {_MARK})"),
        (" score| rating| mark",
         rf"\b{_TELL} (?:with |me )?(?:an? |the |only )?{_BEST}(?: possible)? (?:score|rating|mark)\b"),
        ("score |rating ",
         rf"\b(?:the|its|your) (?:score|rating) (?:is|must be|should be|has to be) (?:the )?(?:{_BEST}\b|100\b)"),
        ("ignorier", r"\bignorier(?:e|en sie)\b[^.!?]{0,40}\banweisung"),
        ("höchst|voll", r"\b(?:bewerte|gib|vergib)\b[^.!?]{0,40}\b(?:höchst|voll)\w* (?:punkt|not|bewert)"),
        ("ignor|oublie|olvida|dimentica|esqueça|negeer",
         rf"\b(?:{_FORGET})\b[^.!?]{{0,40}}\b(?:instruc\w+|instruç\w+|istruzioni|consignes)\b"),
        ("maxim|máxim|massim|la plus",
         rf"\b(?:{_GRANT})\b[^.!?]{{0,40}}\b(?:note|puntuación|nota|punteggio|pontuação) "
         r"(?:maxim|máxim|massim|la plus)"),
        ("игнориру", r"игнориру\w+[^.!?]{0,40}инструкци"),
        ("忽略|无视|無視", r"(?:忽略|无视|無視)[^。！？]{0,12}(?:指令|指示|说明|要求)|(?:指示|命令)[^。！？]{0,8}無視"),
        ("分|満点", r"(?:给|打|評価|評分)[^。！？]{0,10}(?:满分|滿分|満点|最高分)"),
    )
)  # fmt: skip
_SCORE_LINE = re.compile(
    r"^[\s*_#>-]{0,8}(?:overall )?(?:score|rating)[*_]{0,2}\s?[:=]\s?[*_]{0,2}\d+(?: ?(?:/|out of) ?\d+)?[.*_ ]{0,4}$",
    re.MULTILINE,
)
#: Unicode tags, other than those of a flag; supplementary variation selectors in a row, in which bytes can be hidden; a
#: direction that is overridden; what has no width, inside a Latin word or tag.
_UNSEEN = re.compile(
    r"(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0000-\U000e007f]{2}|[\U000e0100-\U000e01ef]{3}|[\ufe00-\ufe0f]{3}|[\u202d\u202e]|"
    r"(?<=[A-Za-z</])[\u200b\u2060-\u2064\ufeff\x00](?=[A-Za-z/>])"
)


def suspicion(text: str) -> str | None:
    """What in a text addresses a judge, as a clause that quotes it; None where nothing does."""
    usual = text.isascii() and (text.isprintable() or not HIDDEN.search(text))
    if not usual and _UNSEEN.search(text):
        return "holds writing that people do not see"
    plain = text if usual else unicodedata.normalize("NFKC", HIDDEN.sub("", text))
    lines = [" ".join(line.split()) for line in plain.casefold().splitlines()]
    plain = " ".join(filter(None, lines))
    if ("score" in plain or "rating" in plain) and _SCORE_LINE.search("\n".join(lines)):
        return "holds a line that gives a score"
    if ("<" in plain or "[" in plain) and (match := _TOKENS.search(plain)):
        return f"holds a prompt's tag or control token ({match[0][:40]!r})"
    for words, phrase in _PHRASES:
        if any(word in plain for word in words) and (match := phrase.search(plain)):
            return f"addresses a judge ({match[0][:80]!r})"
    return None


_LINES = re.compile(r"[^\n.!?。！？]*+[\n.!?。！？]*+")
_SENTENCES = re.compile(r"[^.!?。！？]*+[.!?。！？]*+")
_SHOWN = ("output", "source", "context", "reference")


#: The beginning of a field of an answer or a prompt: harmless alone, but part of an attack beside it.
_FIELD = re.compile(r"\s*(?:explanation|output|source|score|rating|answer|assistant|system|user)\s*:", re.IGNORECASE)


def blanked(text: str) -> str:
    """A text in which all that lies between its first and its last sign of addressing a judge is blanked out ("[…]"),
    whole sentences and lines at a time, and unseen characters are spaces. Same length, so that places hold; a text that
    addresses nobody comes back as it is."""
    for pattern in (_LINES, _SENTENCES):  # a request may go on over a line's end
        if suspicion(text) is None:
            break
        text = HIDDEN.sub(" ", text)
        pieces = pattern.findall(text)
        signs = [i for i, piece in enumerate(pieces) if suspicion(piece) or _FIELD.match(piece)]
        if signs and any(suspicion(pieces[i]) for i in signs):
            last = signs[-1] + 1
            pieces[signs[0] : last] = map(_blank, pieces[signs[0] : last])
        text = "".join(pieces)
    return text


def _blank(piece: str) -> str:
    end = "\n" if piece.endswith("\n") else ""
    size = len(piece) - len(end)
    return "[…]".ljust(size)[:size] + end if piece.strip() else piece


def guarded(item: Item) -> tuple[Item, str | None]:
    """What is judged in an item's place, and what in its texts could have moved the score; None where nothing could."""
    result = {name: reason for name in _SHOWN if (text := getattr(item, name)) and (reason := suspicion(text))}
    if not result:
        return item, None
    name, reason = next(iter(result.items()))
    safe = replace(item, **{name: blanked(getattr(item, name)) for name in result})
    return safe, f"the {name} {reason}; that was left out of the prompt"
