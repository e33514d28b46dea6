"""Whether a text addresses its judge: a rule-based look at what is judged, so that a score that a text could have moved
is not taken for one that it earned.

Three kinds of signs: control tokens of chat templates and tags that close a prompt's material; writing that nobody sees
(Unicode tags, characters without width inside Latin words, reversed directions); and phrases that give a judge
instructions or a score. Phrases are looked for in the folded text (compatibility forms, invisible characters, case,
white space), in English and, for the commonest requests, in other languages. No model is asked, and time grows with the
text's length. A text *about* such attacks is flagged, too; a request in other words is not.
`experiments/bench/suspicion.py` measures both.
"""

from __future__ import annotations

import re

from ...signatures.values import Item
from .layouts import folded

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
_PHRASES = re.compile(
    "|".join(
        (
            r"\b(?:ignore|disregard|forget|override)\b[^.!?]{0,30}\b(?:instructions?|prompts?|guidelines|rubric|criteria)\b",
            r"\bnew instructions?\s?:|\bsystem (?:message|prompt|override)\s?:",
            r"\b(?:notes?|messages?|attention|instructions?|reminder|hint) (?:to|for) "
            rf"(?:the |any |all |every |you,? the )?{_JUDGE}\b",
            rf"\b(?:dear|hello|hi|hey),? (?!judges?\b){_JUDGE}\b",
            r"\byou are (?:an? |the )(?:impartial |strict |fair |expert )?"
            r"(?:grader|evaluator|rater|scorer|annotator)\b",
            rf"\b{_TELL} {_TEXT}\b[^.!?]{{0,30}}\b(?:\d+ ?(?:out of|/) ?\d+|{_BEST}(?: possible)? {_MARK})",
            rf"\b{_TELL} (?:with |me )?(?:an? |the |only )?{_BEST}(?: possible)? (?:score|rating|mark)\b",
            rf"\b(?:the|its|your) (?:score|rating) (?:is|must be|should be|has to be) (?:the )?(?:{_BEST}\b|100\b)",
            r"\bignorier(?:e|en sie)\b[^.!?]{0,40}\banweisung",
            r"\b(?:bewerte|gib|vergib)\b[^.!?]{0,40}\b(?:höchst|voll)\w* (?:punkt|not|bewert)",
            r"\b(?:ignore[zr]?|ignora|ignori|oublie[zr]?|olvida|dimentica|esqueça|negeer)\b[^.!?]{0,40}\b"
            r"(?:instructions|instrucciones|istruzioni|instruções|instructies|consignes)\b",
            r"\b(?:donne[zr]?|attribue[zr]?|asigna|otorga|dale|assegna|atribua)\b[^.!?]{0,40}\b(?:note|puntuación|nota|punteggio|"
            r"pontuação) (?:maxim|máxim|massim|la plus)\w*",
            r"игнориру\w+[^.!?]{0,40}инструкци|(?:忽略|无视|無視)[^。！？]{0,12}(?:指令|指示|说明|要求)|(?:指示|命令)[^。！？]{0,8}無視|"
            r"(?:给|打|評価|評分)[^。！？]{0,10}(?:满分|滿分|満点|最高分)",
        )
    )
)
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
    if _UNSEEN.search(text):
        return "holds writing that people do not see"
    plain = text if text.isascii() and text.isprintable() else folded(text)[0]
    lines = [" ".join(line.split()) for line in plain.casefold().splitlines()]
    if _SCORE_LINE.search("\n".join(lines)):
        return "holds a line that gives a score"
    plain = " ".join(filter(None, lines))
    if found := _TOKENS.search(plain):
        return f"holds a prompt's tag or control token ({found[0][:40]!r})"
    if found := _PHRASES.search(plain):
        return f"addresses a judge ({found[0][:80]!r})"
    return None


def suspicious(item: Item) -> str | None:
    """What in an output, or in what is shown with it, could have moved its score; None where nothing could."""
    for name in ("output", "source", "context", "reference"):
        if (text := getattr(item, name)) and (found := suspicion(text)):
            return f"the {name} {found}"
    return None
