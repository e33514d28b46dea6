"""Keys in words of others: a server's message may quote the key that it was sent."""

from __future__ import annotations

import os
import re

#: How environment variables that hold keys are named.
_NAMED = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)S?$", re.IGNORECASE)
#: The fewest characters of a key: shorter ones ("none") are words.
_SHORTEST = 8
_LIKE_A_KEY = re.compile(
    r"\bsk-[\w-]{8,}|\b(?:gh[a-z]|hf|xox[a-z]|glpat|pk|rk|gsk|xai|r8|nvapi)[-_][\w-]{12,}|"
    r"\b(?:AIza|ya29|AKIA|ASIA)[\w.-]{12,}|\beyJ[\w-]{8,}\.[\w.-]+|(?i:(?<=\bbearer )|(?<=\bbasic ))\S{8,}|"
    r"(?<=//)[^/\s@]+(?=@)|"
    r"(?i:(?<=key=)|(?<=key: )|(?<=token=)|(?<=token: )|(?<=secret=)|(?<=password=))[^\s&\"',;]{6,}|"
    r"\b(?=[A-Za-z_]*\d)(?=[\d_]*[A-Za-z])[A-Za-z0-9_]{32,}"
)


def masked(text: str, *secrets: str | None) -> str:
    """Return the text with `[key]` for the known keys, for those in the environment, and for anything like one."""
    named = (value for name, value in os.environ.items() if _NAMED.search(name))
    for value in sorted({*filter(None, secrets), *named}, key=len, reverse=True):
        if len(value) >= _SHORTEST:
            text = text.replace(value, "[key]")
    return _LIKE_A_KEY.sub("[key]", text)
