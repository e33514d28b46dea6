"""Tell from a server's count of tokens whether it read all of a prompt.

Servers whose context is smaller than a prompt drop its beginning or its middle without a word. What they count then has
far fewer tokens than any tokenizer makes of the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

#: Characters to a token: no tokenizer in use has more in prose. In scripts with a sign for a syllable or a word they
#: have fewer.
_SPARSE = 6
_SPARSE_SIGNS = 3
_SIGNS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
#: Signs that are repeated, as in indentation and rules, are few tokens.
_REPEATED = re.compile(r"(\s|[^\w\s])\1+|\s+")
#: Prompts of fewer tokens fit into every context that servers start with.
_SHORTEST = 1000


def fewest_tokens(messages: Sequence[Mapping[str, str]]) -> int:
    """Return the fewest tokens that messages can have, by their characters.

    >>> fewest_tokens([{"role": "user", "content": "A sentence of words. " * 100}])
    350
    """
    count = 0
    for message in messages:
        text = _REPEATED.sub(" ", message["content"])
        signs = 0 if text.isascii() else len(_SIGNS.findall(text))
        count += (len(text) - signs) // _SPARSE + signs // _SPARSE_SIGNS
    return count


def is_short_count(counted: int, messages: Sequence[Mapping[str, str]]) -> bool:
    """Return True if a server counted fewer tokens than the messages can have; False where it counted none."""
    texts = [message["content"] for message in messages]
    characters = _SPARSE if all(map(str.isascii, texts)) else _SPARSE_SIGNS
    # Nearly every count is plainly enough, or the prompt short: then nothing is gone through.
    enough = max(counted, _SHORTEST)
    if counted <= 0 or enough * characters >= sum(map(len, texts)):
        return False
    return enough < fewest_tokens(messages)
