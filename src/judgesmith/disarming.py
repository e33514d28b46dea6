"""Text from outside, kept from acting in a prompt: it cannot close a tag or speak a chat template's control tokens."""

from __future__ import annotations

import re
import unicodedata

#: Names that are disarmed however they are spaced: "< / output >" would pass for "a < b" otherwise.
_NAMES = (
    r"source|context|reference|output|other|example|examples|score|task|criteria|criteria_scores|observations|aspect|"
    r"annotations?|earlier_\w+|description\w*|criteria_lists|text|think\w*|tool_\w+|start_of_\w+|end_of_\w+|bos|eos|s|"
    r"system|user|assistant|im_\w+"
)
#: What a text may not say, matched in its folded form (see `folded`). Of `<`: all that a letter follows, as in every
#: tag and nearly every control token ("<b>" is disarmed, too, and stays readable), a bar, a slash or a second `<`, and
#: any other word in tight brackets ("<0x0A>"). "a < b", "p <0.05", "x <- y" and "I <3 it" stay. Of `[`: a word in
#: capitals, as chat templates use them, and their names in any case; "[1]" and "[sic]" stay.
_OPENS = re.compile(
    rf"<(?=[^\W\d_]|\s*+[|/<]|[!?]|[^\s<>\w]{{0,8}}\w[^\s<>]{{0,64}}>|\s++(?:{_NAMES})\b)|"
    r"\[(?=\s*+(?:/\s*+)?(?:(?-i:[A-Z][A-Z_]{2,}+)|g?mask|inst|sys|system_\w+|available_\w+|tool_\w+|img\w*)\s*+\])",
    re.IGNORECASE,
)
#: Characters that no reader sees and a tokenizer may drop: Unicode's Default_Ignorable_Code_Point, and control
#: characters that are no white space.
HIDDEN = re.compile(
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_OPENING = re.compile(r"[<[＜﹤［﹇]")
_PLAIN = re.compile(r"[\t\n\r -~]*")
#: Neither is a sign of any template, and compatibility folding (NFKC) leaves both as they are.
_DISARMED = {"<": "‹", "[": "〔"}


class _Folds(dict[str, str]):
    """Characters that each character may pass for, looked up once."""

    def __missing__(self, character: str) -> str:
        unseen = (
            HIDDEN.match(character) or unicodedata.category(character) == "Cn"
        )  # some drop what is unassigned
        plain = "" if unseen else unicodedata.normalize("NFKC", character)
        self[character] = plain
        return plain


_FOLDS = _Folds()
#: Characters that are looked up in one call, which no other thread can interrupt.
_AT_ONCE = 1 << 15


def folded(text: str) -> tuple[str, list[int]]:
    """Return the text in the form that a model may take it for, with the place of each character.

    Compatibility forms (full-width, mathematical, ligatures) become plain ones; invisible and unassigned characters are
    left out. Places are those in `text`.
    """
    letters: list[str] = []
    for start in range(0, len(text), _AT_ONCE):
        letters += map(_FOLDS.__getitem__, text[start : start + _AT_ONCE])
    places = [place for place, plain in enumerate(letters) for _ in plain]
    return "".join(letters), places


def disarm(text: str) -> str:
    """Return a text from outside that cannot close its tags or speak a chat template's control tokens.

    No folding of case, compatibility forms or invisible characters brings one back. The length stays, so that places
    hold.
    """
    before = ""
    while before != text and _has_opening(
        text
    ):  # most texts have none; many times faster than the pattern
        # Once more where something was disarmed: "<0<think>" becomes "<0‹think>", which is tight brackets again.
        before = text
        text = _disarmed(text)
    return text


def _has_opening(text: str) -> bool:
    if text.isascii():  # many times faster again
        return "<" in text or "[" in text
    return _OPENING.search(text) is not None


def _disarmed(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return _OPENS.sub(lambda m: _DISARMED[m[0]], text)
    plain, places = folded(text)
    letters = list(text)
    for match in _OPENS.finditer(plain):
        letters[places[match.start()]] = _DISARMED[match[0]]
    return "".join(letters)
