"""What ended an answer, as servers word it: only what is known to be its own end makes it whole.

Lists of what cuts an answer off would never end. So words that are not known count as a cut.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

Ending = Literal["whole", "limit", "filter", "cut"]

#: The model ended the answer, or called a tool with it. A server that names no reason is believed to have sent all.
_WHOLE = re.compile(
    r"stop(?:ped|sequences?|string|token|word)?|eos(?:token)?|eot|end(?:token|turn|of(?:turn|text|message|sequence))?|"
    r"complete(?:d)?|completion|done|finish(?:ed)?|normal|success|ok|tool(?:calls?|use)?|functioncalls?|none|null"
)
#: The limit of tokens ended it: what stands before its last word is whole.
_LIMIT = re.compile(
    r"(?:max)?length(?:limit)?|max(?:new|output)?tokens?(?:reached)?|tokenlimit|modellength|"
    r"(?:model)?context(?:length|window)(?:exceeded)?"
)
#: A provider's filter ended it, or a model's own rules.
_FILTER = re.compile(
    r"contentfilter(?:ed)?|safety|refusal|prohibitedcontent|blocklist|recitation|sensitive|spii"
)
#: What this package says of an event stream that breaks off.
UNFINISHED = "unfinished"


@lru_cache(maxsize=64)
def ending(finish: str) -> Ending:
    """Return what a server's word for the end of an answer means; "cut" for every word that is not known.

    >>> [ending(word) for word in ("", "FINISH_REASON_STOP", "MAX_TOKENS", "SAFETY", "abort")]
    ['whole', 'whole', 'limit', 'filter', 'cut']
    """
    word = re.sub(r"[^a-z]", "", finish.lower()).removeprefix("finishreason")
    if not finish or _WHOLE.fullmatch(word):
        return "whole"
    if _LIMIT.fullmatch(word):
        return "limit"
    return "filter" if _FILTER.fullmatch(word) else "cut"
