"""Criteria in the user's words, from a file."""

from __future__ import annotations

import json
from pathlib import Path

from judgesmith.errors import OptionError
from judgesmith.signatures.values import Criterion

CRITERIA_FORMS = "write lines `name: definition`, or JSON: {name: definition}"


def read_criteria_file(path: Path, option: str = "--criteria") -> list[Criterion]:
    """Return the criteria of a file, word for word.

    Args:
        path: The file.
        option: What names it on the command line.

    Raises:
        OptionError: for a file that cannot be read, or an entry that is no criterion.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{option} {path}: {error}") from None
    try:
        data = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError):
        data = [tuple(line.split(":", 1)) for line in text.splitlines() if line.strip()]
    if not data or not isinstance(data, list):
        raise OptionError(f"{option} {path}: no criteria in it; {CRITERIA_FORMS}")
    result: dict[str, Criterion] = {}
    for place, entry in enumerate(data, start=1):
        if isinstance(entry, tuple):
            words = [" ".join(word.split()) for word in entry if isinstance(word, str)]
        else:
            words = []
        if len(words) != 2 or not all(words):
            shown = entry[0] if isinstance(entry, tuple) else entry
            raise OptionError(
                f"{option} {path}, entry {place}: {str(shown)[:80]!r} is not a criterion; {CRITERIA_FORMS}"
            )
        if words[0].casefold() in result:
            raise OptionError(
                f"{option} {path}: {words[0]} more than once; give each criterion once"
            )
        result[words[0].casefold()] = Criterion(*words)
    return list(result.values())
