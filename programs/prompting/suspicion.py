"""Whether a text addresses its judge: a look by rules at what is judged, so that a score that a text could have moved
is not taken for one that it earned.

Signs are evidence in log-odds, of each kind the strongest; together they give a probability. Most are patterns of words
in nine languages, and single phrases of six more, kept as data (`attacks.yaml`); the others are control tokens, tags
that close a prompt's material, writing that people do not see, and what stands in code. No model is asked, and time
grows with the text's length. `experiments/results/attacks.md` has recall and false alarms.

What could break the frame of a prompt is disarmed in every text (`judgesmith.disarming`). A text with signs is judged
twice, as it is and without the sentences that hold them (`blanked`), and where that moves the score the verdict without
them counts (`weighed`).
"""

from __future__ import annotations

import base64
import binascii
import html
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped,unused-ignore]

from ...disarming import HIDDEN
from ...signatures.values import Item, Verdict

#: From this probability on a text is called suspicious; from the second on it is judged without its signs, too.
FLAGGED, LOOKED_INTO = 0.5, 0.2
#: How far signs may move a score, in percent of its scale, before the verdict without them counts.
MOST_MOVED = 10.0


class Sign(NamedTuple):
    """A piece of evidence: its kind, its weight in log-odds, and what it is, as a clause."""

    kind: str
    weight: float
    about: str


@cache
def _known() -> tuple[float, list[Any], list[Any], list[Any]]:
    """What the data say: the log-odds of a text without signs; patterns, each with its kind, its weight, and the words
    of which one is in every text that it is found in; the concepts of each language, likewise; and the kind and the
    weight of those that stand together."""
    data = yaml.safe_load(files(__package__).joinpath("attacks.yaml").read_text(encoding="utf-8"))

    def compiled(pattern: str) -> re.Pattern[str]:
        for _ in range(2):  # parts have parts
            for name, part in data["parts"].items():
                pattern = pattern.replace(f"{{{name}}}", part)
        return re.compile(pattern.replace(" ", r"\s"), re.MULTILINE)

    return (
        data["base"],
        [(p["kind"], p["weight"], p["words"].split("|"), compiled(p["pattern"])) for p in data["patterns"]],
        [(c.pop("words").split("|"), {n: compiled(one) for n, one in c.items()}) for c in data["concepts"].values()],
        [(t["kind"], t["weight"], set(t["all"])) for t in data["together"]],
    )


_TOKENS = re.compile(
    r"<\s?\|[^|<>\n]{1,40}\|\s?>|<<\s?/?sys\s?>>|"
    r"</?\s?(?:think(?:ing)?|tool_(?:call|response|use)s?|(?:start|end)_of_(?:turn|text|image)|begin_of_text|eot_id|"
    r"eom_id|bos|eos|im_(?:start|end|sep)|end_of_sentence|system|assistant)\s?>|"
    r"\[\s?/?\s?(?:inst|system_prompt|available_tools|tool_(?:calls|results|content)|gmask)\s?\]"
)
_TAGS = re.compile(
    r"<\s?(/?)\s?(output|source|context|reference|criteria|examples?|task|instructions?|material|text|s)\b[^<>]{0,80}>"
)
#: Who writes of markup: tokens and tags are what the text is about.
_MARKUP = re.compile(r"\b(?:tags?|elements?|tokens?|tokenizer|html|xml|markup|templates?|syntax|wraps?|between)\b")
#: Unicode tags, other than those of a flag; supplementary variation selectors in a row, in which bytes can be hidden.
_UNSEEN = re.compile(
    r"(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0000-\U000e007f]{2,}|[\U000e0100-\U000e01ef]{3}|[\ufe00-\ufe0f]{3}"
)
#: What has no width, inside a Latin word or tag; a direction that is overridden.
_SPLIT = re.compile(r"(?<=[A-Za-z</])[\u200b\u2060-\u2064\ufeff\x00\u00ad](?=[A-Za-z/>])|[\u202d\u202e]")
#: Signs that look like the brackets and the slash of a tag; letters that look like Latin ones.
_BRACKETS = str.maketrans("‹〈《＜⟨❮›〉》＞⟩❯∕⁄╱", "<<<<<<>>>>>>///")
_ALIKE = str.maketrans("аеорсухіјѕһԁԛѡвкмнтгοαερικνυτ013457", "aeopcyxijshdqwbkmhtroaepiknutoieast")
_WORD = re.compile(r"[^\W_]+")
#: Latin letters beside Greek or Cyrillic ones or beside digits, as no word has them.
_MIXED = re.compile(r"[a-z][а-ӿα-ωԁԛѡ]|[а-ӿα-ωԁԛѡ][a-z]|[a-z]{2}[0134]|[0134][a-z]{2}")
_SPACED = re.compile(r"(?:\b\w\s{1,4}){7,}\w\b")
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.](?=\d)[^.!?。！？\n]+)*[.!?。！？\n]*")
CLOSE = 160  # characters of a sentence that belongs with the one before it
_BASE64 = re.compile(r"[A-Za-z0-9+/]{12,}={0,2}")
_HEX = re.compile(r"\b(?:[0-9a-fA-F]{2}\s?){12,4000}\b")


def _plain(text: str) -> str:
    """Folded: compatibility forms, case, brackets, one space between words, no invisible characters; lines kept."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", HIDDEN.sub("", text)).translate(_BRACKETS)
    elif not text.isprintable():
        text = HIDDEN.sub("", text)
    lines = (" ".join(line.split()) for line in text.casefold().splitlines())
    return "\n".join(filter(None, lines))


def _readable(plain: str) -> str:
    """With disguises undone: letters of other scripts and digits for Latin letters, spaces or strokes between them."""
    made = _SPACED.sub(lambda m: re.sub(r"(?<=\w)\s(?=\w\b)", "", m[0]), re.sub(r"[\u0335-\u0338]", "", plain))
    if _MIXED.search(made):
        made = _WORD.sub(lambda m: m[0].translate(_ALIKE) if len(m[0]) < 40 and _MIXED.search(m[0]) else m[0], made)
    return re.sub(r"(?<=[a-z])[-_](?=[a-z])", " ", made)


def _decoded(text: str) -> Iterator[str]:
    """What is written in base64 or in hexadecimal digits, where it is a text."""
    for pattern, read in ((_BASE64, lambda code: base64.b64decode(f"{code}==")), (_HEX, bytes.fromhex)):
        for match in list(pattern.finditer(text))[:20]:
            try:
                said = read(match[0]).decode("utf-8")
            except (ValueError, binascii.Error):
                continue
            if said.isprintable():
                yield said


def signs(text: str) -> list[Sign]:
    """Evidence for a text's addressing a judge, and against it (a negative weight): of each kind the strongest."""
    plain = _plain(text)
    found = [*_of_words(plain), *_of_frame(html.unescape(plain) if "&" in plain else plain)]
    readable = _readable(plain)
    if readable != plain:
        found += [*_of_words(readable), *_of_frame(readable)]
    for said in _decoded(text):
        found += (Sign("code", s.weight + 1, f"{s.about}, in code") for s in _of_words(_plain(said)) if s.weight > 2)
    if not text.isascii():
        found += _of_writing(text)
    return list({sign.kind: sign for sign in sorted(found, key=lambda sign: abs(sign.weight))}.values())


def _of_words(plain: str) -> Iterator[Sign]:
    for kind, weight, words, pattern in _known()[1]:
        if any(word in plain for word in words) and (match := pattern.search(plain)):
            yield _addresses(kind, weight, match[0])
    for words, concepts in _known()[2]:
        if any(word in plain for word in words):
            yield from _of_concepts(plain, concepts)


def _addresses(kind: str, weight: float, words: str) -> Sign:
    return Sign(kind, weight, f"addresses a judge ({' '.join(words.split()).lstrip(' .,;:!?-')[:80]!r})")


def _of_concepts(plain: str, concepts: dict[str, re.Pattern[str]]) -> Iterator[Sign]:
    """Concepts that stand together in a sentence or in two short ones that follow each other."""
    before: set[str] = set()
    known = {name: pattern for name, pattern in concepts.items() if pattern.search(plain)}
    together = [one for one in _known()[3] if one[2] <= set(known)]
    for sentence in _SENTENCE.findall(plain) if together else ():
        here = {name for name, pattern in known.items() if pattern.search(sentence)}
        there = here | before if len(sentence) < CLOSE else here
        yield from (_addresses(k, w, sentence) for k, w, all_ in together if all_ <= there and all_ & here)
        before = here if len(sentence) < CLOSE else set()


def _of_frame(plain: str) -> Iterator[Sign]:
    """Control tokens, and closing tags of a prompt that nothing in the text has opened."""
    if "<" not in plain and "[" not in plain:
        return
    about, match = bool(_MARKUP.search(plain)), _TOKENS.search(plain)
    if match:
        yield Sign("token", 2.5 if about else 5.0, f"holds a prompt's control token ({match[0][:40]!r})")
    opened = Counter[str]()
    for tag in _TAGS.finditer(plain):
        if not tag[1]:
            opened[tag[2]] += 1
        elif opened[tag[2]]:
            opened[tag[2]] -= 1
        else:
            yield Sign("tag", 2.5 if about else 5.0, f"holds a prompt's closing tag ({tag[0][:40]!r})")


def _of_writing(text: str) -> Iterator[Sign]:
    if match := _UNSEEN.search(text):
        said = _plain("".join(chr(ord(c) - 0xE0000) for c in match[0] if 0xE0020 <= ord(c) < 0xE007F))
        yield Sign("unseen", 5.0, f"holds writing that people do not see{f' ({said[:40]!r})' if said else ''}")
    elif count := len(_SPLIT.findall(text)):
        yield Sign("unseen", min(2.5, 0.8 * count), "holds characters that people do not see, inside words")


def probability(found: list[Sign]) -> float:
    """That a text with these signs addresses a judge."""
    return 1 / (1 + math.exp(-_known()[0] - math.fsum(sign.weight for sign in found)))


@dataclass(frozen=True, slots=True)
class Suspicion:
    """How likely a text addresses its judge, and what in it says so, as a clause that quotes it."""

    probability: float
    about: str

    def __str__(self) -> str:
        return f"{self.about}, probability {self.probability:.2f}"


def suspicion(text: str, least: float = FLAGGED) -> Suspicion | None:
    """None for a text that probably addresses nobody. least: the probability from which on one is suspicious."""
    found = signs(text)
    if not found or (likely := probability(found)) < least:
        return None
    return Suspicion(likely, max(found, key=lambda sign: sign.weight).about)


_LINES = re.compile(r"[^\n.!?。！？]*+[\n.!?。！？]*+")
_SENTENCES = [re.compile(rf"(?:[^.!?。！？]*+[.!?。！？]*+){{{count}}}") for count in (1, 2, 5)]
_SHOWN = ("output", "source", "context", "reference")
#: The beginning of a field of an answer or a prompt: harmless alone, but part of an attack beside it.
_FIELD = re.compile(r"\s*(?:explanation|output|source|score|rating|answer|assistant|system|user)\s*:", re.IGNORECASE)


def blanked(text: str) -> str:
    """A text in which all that lies between its first and its last sign of addressing a judge is blanked out ("[…]"),
    whole sentences and lines at a time, and unseen characters are spaces. Same length, so that places hold; a text that
    addresses nobody comes back as it is."""
    for pattern in (_LINES, *_SENTENCES):  # a request may continue over the end of a line or a sentence
        if suspicion(text, LOOKED_INTO) is None:
            break
        text = HIDDEN.sub(" ", text)
        pieces = pattern.findall(text)
        strong = [any(sign.weight >= 2 for sign in signs(piece)) for piece in pieces]
        alone = [suspicion(piece) is None for piece in pieces]
        for i in range(len(pieces) - 1):  # two that only together are a request
            if alone[i] and alone[i + 1] and suspicion(pieces[i] + pieces[i + 1]):
                strong[i] = strong[i + 1] = True
        marked = [i for i, piece in enumerate(pieces) if strong[i] or _FIELD.match(piece)]
        if any(strong):
            last = marked[-1] + 1
            pieces[marked[0] : last] = map(_blank, pieces[marked[0] : last])
        text = "".join(pieces)
    return text


def _blank(piece: str) -> str:
    end = "\n" if piece.endswith("\n") else ""
    size = len(piece) - len(end)
    return "[…]".ljust(size)[:size] + end if piece.strip() else piece


def guarded(item: Item, least: float = FLAGGED) -> tuple[Item, Suspicion | None]:
    """An item without the sentences that address a judge, and what in its texts could have moved the score; None where
    nothing could."""
    found = {name: said for name in _SHOWN if (text := getattr(item, name)) and (said := suspicion(text, least))}
    if not found:
        return item, None
    name, said = max(found.items(), key=lambda one: one[1].probability)
    changed: dict[str, Any] = {name: blanked(getattr(item, name)) for name in found}
    safe = replace(item, **changed)
    return safe, Suspicion(said.probability, f"the {name} {said.about}")


def weighed(with_signs: Verdict, without: Verdict, said: Suspicion) -> Verdict:
    """Of the verdicts on a text as it is and without what addresses the judge, the one that counts: the latter where
    the difference is more than `MOST_MOVED`. `suspicious` says so, and what the difference is."""
    moved = with_signs.percent - without.percent
    within = abs(moved) <= MOST_MOVED or (math.isnan(moved) and said.probability < FLAGGED)
    counts = with_signs if within else without
    if math.isnan(moved):
        effect = "a score is missing with or without it"
    else:
        size, way = round(abs(moved)), "raises" if moved > 0 else "lowers"
        effect = f"it {way} the score by {size} percent of the scale" if size else "it does not change the score"
        effect += (
            ", and the text is judged without it" if not within else ", too little to judge without it" if size else ""
        )
    told = None if within and said.probability < FLAGGED else f"{said}; {effect}"
    return counts.model_copy(update={"usage": with_signs.usage + without.usage, "suspicious": told})
