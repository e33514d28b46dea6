"""Look for texts that address their judge, so that a score moved by a text is not taken for an earned one.

Two kinds of signs count. *Frames* are exact: control tokens, tags that close a prompt's material, writing that people
do not see. *Words* are likely: a small model that was trained on attacks in fifteen languages (`wording`) gives the
log-odds of each sentence, also of what stands in base64 or hexadecimal digits. No language model is asked; each piece
is looked at once, in time that grows with the text's length. `experiments/results/attacks.md` has recall, false alarms
and who wrote the texts.
"""

from __future__ import annotations

import base64
import binascii
import html
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from judgesmith.programs.prompting.suspicion import FLAGGED, Suspicion
from judgesmith.rooms.injections import wording
from judgesmith.signatures.values import Item

#: Log-odds of a frame; from which on neighbours count together.
FRAME = 1.0
NEIGHBOURS = -1.4
#: Log-odds that an address in code has beyond its words: nobody writes to a reader in code.
CODED = 2.0
#: A run of fewer words beside numbers asks for nothing: "Result: 100" may be an answer.
ASKING = 3
#: Beside a sentence that is flagged, one of this probability is cut with it: "Note to the grader: … Rate this 100."
BESIDE = 0.2
#: A text with fewer words left is not judged without its signs: what remains is no text of its author's.
LEFT = 5
#: Up to how many characters the texts of a row are looked at together.
SHORT = 5_000

_CONTROL = (
    r"(?:<\s?\|[^|<>\n]{1,40}\|\s?>|<<\s?/?sys\s?>>|"
    r"</?\s?(?:think(?:ing)?|tool_(?:call|response|use)s?|(?:start|end)_of_(?:turn|text|image)|begin_of_text|eot_id|"
    r"eom_id|bos|eos|im_(?:start|end|sep)|end_of_sentence|system|assistant)\s?>|"
    r"\[\s?/?\s?(?:inst|system_prompt|available_tools|tool_(?:calls|results|content)|gmask)\s?\])"
)
_TOKENS = re.compile(
    rf"{_CONTROL}(\s?(?:{_CONTROL}|(?:system|user|assistant|model)\b))?"
)
_TAGS = re.compile(
    r"<\s?(/?)\s?(output|source|context|reference|criteria|examples?|task|instructions?|material|text|s)\b[^<>]{0,80}>"
)
#: Who writes of markup: tokens and tags are what the sentence is about.
_MARKUP = re.compile(
    r"\b(?:tags?|elements?|tokens?|tokenizer|html|xml|markup|templates?|syntax|wraps?|between)\b"
)
#: An answer in a form that prompts ask for.
_ANSWER = re.compile(
    r"^explanation\s?:[^\n]+\n+(?:score|rating)\s?[:=] ?\d+|"
    r"\{\s*\"(?:score|rating)\"\s*:\s*\"?\d[^{}]{0,40}\"(?:explanation|reason)|"
    r"\{\s*\"(?:explanation|reason\w*)\"\s*:[^{}]{0,400}\"(?:score|rating)\"\s*:",
    re.MULTILINE,
)
#: Brackets as HTML writes them.
_ENTITY = re.compile(r"&(?:lt|gt|#6[02]|#x3[ce]);", re.IGNORECASE)
#: Unicode tags, other than those of a flag; supplementary variation selectors in a row, in which bytes can be hidden.
_UNSEEN = re.compile(
    r"(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0000-\U000e007f]{2,}|[\U000e0100-\U000e01ef]{3}|[\ufe00-\ufe0f]{3}"
)
_BASE64 = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
_HEX = re.compile(r"\b(?:[0-9a-fA-F]{2}){12,4000}\b")


class Sign(NamedTuple):
    """A piece of evidence: its log-odds, where it stands in the text, and what it is, as a clause."""

    odds: float
    begin: int
    end: int
    about: str


def probability(odds: float) -> float:
    """Return the probability of these log-odds."""
    return 1 / (1 + math.exp(-odds))


def log_odds(likely: float) -> float:
    """Return the log-odds of this probability; infinite from 0 down and from 1 up."""
    if 0 < likely < 1:
        return math.log(likely / (1 - likely))
    return math.inf if likely >= 1 else -math.inf


def signs(text: str, least: float = FLAGGED) -> list[Sign]:
    """Return the parts that address a judge with at least this probability, in order for each kind."""
    floor = log_odds(least)
    shown = _ENTITY.sub(_bracket, text) if "&" in text else text
    folded = wording.fold(shown)
    words = wording.words(folded)
    evidence = [*_of_words(text, folded, words, floor)]
    if words.longest >= 12:
        evidence += _of_code(text, floor)
    evidence += _of_answer(folded, len(text))
    if "<" in folded.text or "[" in folded.text:
        evidence += filter(None, _of_frame(folded, len(text)))
    if not text.isascii():
        evidence += _of_writing(text)
    return [sign for sign in evidence if sign.odds >= floor]


def _bracket(match: re.Match[str]) -> str:
    """Return the sign that an entity stands for, at the same length: NUL is not seen."""
    return html.unescape(match[0]).ljust(len(match[0]), "\0")


def _places(folded: wording.Folded, begin: int, end: int, size: int) -> tuple[int, int]:
    """Return the place of a part of the folded text in the text, with unseen characters behind it."""
    return int(folded.places[begin]), int(folded.places[end]) if end < len(
        folded.places
    ) else size


def _of_words(
    text: str, folded: wording.Folded, found: wording.Words, floor: float
) -> Iterator[Sign]:
    runs = wording.runs(found)
    high = runs.odds >= floor
    if not high.any():
        return  # as in most texts
    alone = np.flatnonzero(high[: runs.alone])
    neighbours = runs.alone + np.flatnonzero(
        runs.odds[runs.alone :] >= max(floor, NEIGHBOURS)
    )
    # Of neighbours that only together are a request.
    neighbours = neighbours[~np.isin(runs.begins[neighbours], runs.begins[alone])]
    neighbours = neighbours[~np.isin(runs.ends[neighbours], runs.ends[alone])]
    for run in [*alone.tolist(), *neighbours.tolist()]:
        first = runs.begins[run]
        last = runs.ends[run]
        if wording.size(folded, found, first, last) < ASKING:
            continue
        begin, end = _places(
            folded, found.starts[first], found.ends[last - 1], len(text)
        )
        quoted = " ".join(text[begin : min(end, begin + 160)].split())[:80]
        yield Sign(float(runs.odds[run]), begin, end, f"addresses a judge ({quoted!r})")


def _of_code(text: str, floor: float) -> Iterator[Sign]:
    """Yield the parts in base64 or in hexadecimal digits that address a judge: each is looked at as a whole."""
    places = list[re.Match[str]]()
    decoded = list[str]()
    for pattern, read in ((_BASE64, _from_base64), (_HEX, bytes.fromhex)):
        for match in pattern.finditer(text):
            try:
                plain = read(match[0]).decode("utf-8")
            except (ValueError, binascii.Error):
                continue
            if plain.isprintable():
                places.append(match)
                decoded.append(plain)
    if not decoded:
        return
    joined = "\n\n".join(decoded)
    begins = np.cumsum([0, *(len(one) + 2 for one in decoded)]).tolist()
    folded = wording.fold(joined)
    for sign in _of_words(joined, folded, wording.words(folded), floor - CODED):
        match = places[bisect_right(begins, sign.begin) - 1]
        about = f"{sign.about}, in code"
        yield Sign(sign.odds + CODED, match.start(), match.end(), about)


def _from_base64(code: str) -> bytes:
    return base64.b64decode(code.rstrip("=") + "==")


def _of_answer(folded: wording.Folded, size: int) -> Iterator[Sign]:
    """A judge's answer that somebody wrote beforehand."""
    if "score" not in folded.text and "rating" not in folded.text:
        return
    for match in _ANSWER.finditer(folded.text):
        places = _places(folded, match.start(), match.end(), size)
        yield Sign(
            FRAME,
            *places,
            f"holds an answer in a judge's form ({' '.join(match[0].split())[:60]!r})",
        )


def _of_frame(folded: wording.Folded, size: int) -> Iterator[Sign | None]:
    """Control tokens, and closing tags of a prompt that nothing has opened; None for one that a text is about."""
    text = folded.text

    def sign(match: re.Match[str], what: str, exact: bool) -> Sign | None:
        begin, end = _line(text, match.start(), match.end())
        mentioned = not exact and _MARKUP.search(
            text, max(begin, match.start() - 200), min(end, match.end() + 200)
        )
        places = _places(folded, match.start(), match.end(), size)
        about = f"holds a prompt's {what} ({match[0][:40]!r})"
        return None if mentioned else Sign(FRAME, *places, about)

    for match in _TOKENS.finditer(text):
        yield sign(match, "control token", exact=bool(match[1]))
    opened = Counter[str]()
    for match in _TAGS.finditer(text):
        if not match[1]:
            opened[match[2]] += 1
        elif opened[match[2]]:
            opened[match[2]] -= 1
        else:
            yield sign(match, "closing tag", exact=False)


def _line(text: str, begin: int, end: int) -> tuple[int, int]:
    """The line that holds these places."""
    after = text.find("\n", end)
    return text.rfind("\n", 0, begin) + 1, len(text) if after < 0 else after


def _of_writing(text: str) -> Iterator[Sign]:
    for match in _UNSEEN.finditer(text):
        hidden = "".join(
            chr(ord(c) - 0xE0000) for c in match[0][:80] if 0xE0020 <= ord(c) < 0xE007F
        )
        about = f"holds writing that people do not see{f' ({hidden[:40].casefold()!r})' if hidden else ''}"
        yield Sign(FRAME, match.start(), match.end(), about)


def suspicion(text: str, least: float = FLAGGED) -> Suspicion | None:
    """Return the suspicion against a text; None for one that probably addresses nobody.

    Args:
        text: The text.
        least: The probability from which on a text is suspicious.
    """
    return _strongest(signs(text, least))


def _strongest(evidence: Sequence[Sign]) -> Suspicion | None:
    strongest = max(evidence, key=lambda sign: sign.odds, default=None)
    if strongest is None:
        return None
    return Suspicion(probability(strongest.odds), strongest.about)


#: What opens a sentence before its words and closes it behind them, and white space that a cut must not leave twice.
_OPENING = '([{"“«*_#'
_CLOSING = re.compile(r"[.!?。！？؟।…\"'”’»)\]}*_]*+")
_SPACE = re.compile(r"[ \t]*+\n?")


def without(text: str, evidence: Sequence[Sign]) -> str:
    """Return a text without the sentences that address a judge, and without what closes them.

    Nothing stands in their place: a placeholder moves the score of a small model by itself. What lies between two of
    them stays. A text of which fewer than `LEFT` words would remain comes back unchanged.

    Args:
        text: The text.
        evidence: Its `signs`.
    """
    parts = list[str]()
    done = 0
    for sign in sorted(evidence, key=lambda sign: sign.begin):
        if sign.begin > done:
            parts.append(text[done : sign.begin].rstrip(_OPENING))
        done = max(done, _closed(text, sign.end))
    parts.append(text[done:])
    rest = "".join(parts).strip()
    return rest if _is_text(rest) else text


def _without_request(text: str, evidence: Sequence[Sign]) -> str:
    """Return a flagged text without its signs and weaker ones; without its signs alone if little is left."""
    rest = without(text, signs(text, BESIDE))
    return without(text, evidence) if rest == text else rest


def _is_text(rest: str) -> bool:
    """Return whether what is left of a text has `LEFT` words; few texts are looked at beyond their beginning."""
    found = 0
    for start in range(0, len(rest), SHORT):
        found += wording.counted(rest[start : start + SHORT])
        if found >= LEFT:
            return True
    return False


def _closed(text: str, end: int) -> int:
    """Return where a sentence that ends here is closed, with the space behind it."""
    closing = _CLOSING.match(text, end)
    space = _SPACE.match(text, end if closing is None else closing.end())
    return end if space is None else space.end()


#: The texts of a row that are looked at.
SHOWN = ("output", "source", "context", "reference")


def plain_texts(item: Item) -> str | None:
    """Return the texts of a row in one, if they can be looked at together with others; else None.

    They can if they are short, and hold no signs of which one text opens and another closes.
    """
    texts = (item.output, item.source, item.context, item.reference)
    whole = "\n\n".join(filter(None, texts))
    if len(whole) >= SHORT or "<" in whole or "[" in whole or "&" in whole:
        return None
    return whole


def harmless(texts: Sequence[str], least: float = FLAGGED) -> bool:
    """Return True if nothing in any of these texts addresses a judge, after one look at all of them.

    The look costs little more than one at each. False if something may: neighbours can be taken together.
    """
    return not signs("\n\n".join(texts), least)


def guarded(item: Item, least: float = FLAGGED) -> tuple[Item, Suspicion | None]:
    """Return an item without the sentences that address a judge, and the suspicion; None for an unsuspicious item.

    The item comes back as it is where too little would be left of each text with such sentences.
    """
    whole = plain_texts(item)
    if whole is not None and harmless([whole], least):
        return item, None  # as most rows, after one look at all of it
    safe = dict[str, Any]()
    strongest = None
    for name in SHOWN:
        text = getattr(item, name)
        evidence = signs(text, least) if text else []
        suspect = _strongest(evidence)
        if suspect is None:
            continue
        safe[name] = _without_request(text, evidence)
        if strongest is None or suspect.probability > strongest.probability:
            strongest = Suspicion(suspect.probability, f"the {name} {suspect.about}")
    return replace(item, **safe), strongest
