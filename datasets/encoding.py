"""The encoding of a file of text: UTF-8, UTF-16, or what a library finds in files that are older than both."""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from judgesmith.errors import LabelsError

#: What offices save texts as, those of most files first: among equally plausible ones the first is taken.
_OFFICE = [
    *("cp1252", "cp1250", "cp1251", "cp932", "gb18030", "big5", "cp949"),
    *("cp1254", "cp1253", "cp1257", "cp1255", "cp1256", "mac_roman"),
]
#: Where anything else fits as well, it is that.
_LAST = "mac_roman"
_MARKS = (
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_CHUNK = 1 << 20
_SAMPLE = 50_000  # bytes of lines beyond ASCII that are looked at
# words in a note, and characters of each
_WORDS = 4
_SHOWN = 24


def binary(path: Path) -> BinaryIO:
    """Open a file for reading bytes, unpacking gzip."""
    if path.suffix.lower() == ".gz":
        return cast(BinaryIO, gzip.open(path))
    return path.open("rb")


def encoding_of(path: Path) -> tuple[str, str | None]:
    """Return the encoding of a text file, and a note for the user if it was detected.

    Every byte is looked at, as the first one that is not ASCII may stand in the last row.

    Raises:
        LabelsError: For damaged UTF-8, and for bytes that no encoding fits.
    """
    with binary(path) as raw:
        head = raw.read(4096)
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name, None
    if head.count(b"\0") * 4 > len(
        head
    ):  # two bytes a letter, without a mark that says in which order
        little = head[1::2].count(b"\0") > head[::2].count(b"\0")
        return ("utf-16-le" if little else "utf-16-be"), None
    broken = _not_utf8(path)
    return ("utf-8-sig", None) if broken is None else _found(path, broken)


def _chunks(path: Path) -> Iterator[bytes]:
    with binary(path) as raw:
        while chunk := raw.read(_CHUNK):
            yield chunk


def _not_utf8(path: Path) -> int | None:
    """The line (from 1) with the first byte that is not UTF-8, None where all are."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines = 1
    try:
        for chunk in _chunks(path):
            lines += decoder.decode(chunk).count("\n")
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return lines + error.object[: error.start].count(b"\n")
    return None


def _found(path: Path, line: int) -> tuple[str, str]:
    problem = f"{path.name}, line {line}: the text is not UTF-8"
    advice = "save the file as UTF-8 (Excel: CSV UTF-8)"
    sample = bytearray()
    with binary(path) as raw:
        for text in raw:
            if not text.isascii():
                sample += text
            if len(sample) > _SAMPLE:
                break
    read = bytes(sample).decode("utf-8", "surrogateescape")
    odd = sum("\udc80" <= letter <= "\udcff" for letter in read)
    if sum(letter > "\x7f" for letter in read) >= 2 * odd:
        raise LabelsError(
            f"{problem}, though most of the file is: it is damaged there; write it again, or {advice}"
        )
    from charset_normalizer import from_bytes

    matches = from_bytes(bytes(sample), cp_isolation=list(_OFFICE))
    for name in _ranked(matches):
        if _decodes(path, name):
            shown = _beyond_ascii(bytes(sample).decode(name))
            return name, (
                f"{path.name}: the text is not UTF-8 and was read as {name}, which was found by its letters ({shown}); "
                f"{advice} if these are wrong"
            )
    raise LabelsError(f"{problem}, and no other encoding fits; {advice}")


def _decodes(path: Path, name: str) -> bool:
    decoder = codecs.getincrementaldecoder(name)()
    try:
        for chunk in _chunks(path):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _ranked(matches: Iterable[Any]) -> list[str]:
    """The names of encodings that a text may have, the likeliest first."""
    ranked = list[tuple[Any, ...]]()
    for match in matches:
        chaos = round(match.chaos, 1)
        coherence = -round(match.coherence, 1)
        for name in match.could_be_from_charset:
            if name in _OFFICE:
                place = _OFFICE.index(name)
                ranked.append((name == _LAST, chaos, coherence, place, name))
    return [name for *_, name in sorted(ranked)]


def _beyond_ascii(text: str) -> str:
    """The first words of a text with other letters than English has."""
    words = re.findall(r"[^\W\d_]+", text)
    beyond = dict.fromkeys(word[:_SHOWN] for word in words if not word.isascii())
    return ", ".join(list(beyond)[:_WORDS]) or "signs alone"
