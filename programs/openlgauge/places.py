"""A line of location: it may hold quotes, several places, an ellipsis, a comment or an omission."""

from __future__ import annotations

import re

#: Words in quotes of any kind. No pair may hold its own opening mark, so that looking stays linear.
QUOTED = re.compile(
    r""""([^"\n]+)"|“([^“”\n]+)”|„([^„“”"\n]+)[“”"]|«([^«»\n]+)»|»([^«»\n]+)«|「([^「」\n]+)」|『([^『』\n]+)』"""
    r"""|‘((?:[^‘’\n]|(?<=\w)’(?=\w))+)’|(?<!\w)'((?:[^'\n]|(?<=\w)'(?=\w))+)'(?!\w)|`([^`\n]+)`"""
)
ELLIPSIS = re.compile(r"(?<!\s)\s*+(?:[\[(]\s*(?:\.{3,6}|…+)\s*[\])]|\.{3,6}|…+|⋯+)\s*")
_JOIN = re.compile(r"\s*+(?:\([^()\n]*\)\s*+)?(?:(?:,|;|/|&|\+|\||、)\s*+)?(?:\b(?:and|or)\b\s*+)?", re.IGNORECASE)
_REACH = re.compile(rf"{ELLIPSIS.pattern}|\s*(?:-+>|→|to|through|until)\s*", re.IGNORECASE)
_OMISSION = re.compile(
    r"""[\W_]*(?:(?:the\ |an?\ )?omissions?|omitted|missing|left\ out|not\ (?:mentioned|included|present|stated)|absent)
    (?=[\W_]*$|\ *[:,;(–—-]|\ +(?:of|in|from|at|on|information|info|details?|content|facts?)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
_NOWHERE = re.compile(r"[\W_]*+(?:n/?a|none|null|nil|unknown|not applicable)?[\W_]*", re.IGNORECASE)
#: What is said about a place beside its words.
_ABOUT = re.compile(
    r"\b(?:sentence|line|paragraph|occurrence|mention|word|phrase|text|clause|expression|statement|part|title|summary"
    r"|response|output|first|second|third|last|final|\d{1,2}[a-z]{2})s?\b",
    re.IGNORECASE,
)


def plain(text: str) -> str:
    """A text with one kind of quotes and spaces, in lower case: enough to see whether words stand in it."""
    return " ".join(re.sub(r"[\"'`´“”„‟‘’‚«»‹›]", "'", text).casefold().split())


def in_quotes(quoted: re.Match[str]) -> str:
    """The words of a match of QUOTED."""
    return next(filter(None, quoted.groups()), "").strip()


def read_places(line: str, output: str = "") -> list[tuple[str | None, str]]:
    """(words, comment) for every place that a location line names; None for an omission, "" for no place.

    With `output`, a line that stands there as it is, is one place, whatever quotes or commas are in it.
    """
    line = _undecorated(line)
    if re.fullmatch(r"[\W_]*omissions?[\W_]*", line, re.IGNORECASE):
        return [(None, "")]
    within = plain(output)
    if output and line and (line in output or (len(line) > 3 and plain(line) in within)):
        return [(line, "")]
    if _NOWHERE.fullmatch(line) and not (QUOTED.fullmatch(line) and not re.search(r"\w", line)):
        return [("", "")]  # but "," in quotes is a place
    if match := _OMISSION.match(line):
        return [(None, " ".join(line[match.end() :].strip(" \t\n:–—-,.()[]\"'“”*_").split()))]
    return _quoted_places(line) or _bare_places(line, output, within)


def _undecorated(line: str) -> str:
    """Without a list's mark, markdown emphasis and tags around it."""
    line = re.sub(r"^\s*(?:[-*•>]\s+|\d{1,3}[.)]\s+)?(?:<\w{1,20}>)?\s*", "", line)
    line = re.sub(r"</\w{1,20}>$", "", line.strip()).strip("| \t\n")
    for mark in ("***", "**", "__", "*", "_", "`"):
        if len(line) > 2 * len(mark) and line.startswith(mark) and line.endswith(mark):
            line = line[len(mark) : -len(mark)].strip()
    return line


def _quoted_places(line: str) -> list[tuple[str | None, str]]:
    """Places of a line whose words are in quotes; empty where the quotes are part of the words."""
    matches = list(QUOTED.finditer(line))
    lead = line[: matches[0].start()].strip() if matches else ""
    if not matches or (lead and not (len(lead) <= 60 and _ABOUT.search(lead))):
        return []
    places: list[tuple[str, str]] = []
    end = matches[0].start()
    for match in matches:
        words, gap = in_quotes(match), line[end : match.start()]
        if not places:
            places.append((words, lead.strip(" :,-–—")))
        elif _REACH.fullmatch(gap):
            places[-1] = (f"{places[-1][0]} … {words}", places[-1][1])
        elif gap.strip() and _JOIN.fullmatch(gap):
            if beside := re.search(r"\(([^()]*)\)", gap):
                places[-1] = (places[-1][0], beside[1])
            places.append((words, ""))
        else:
            break  # from here on it is a comment: "foo" instead of "bar"
        end = match.end()
    rest = line[end:].strip(" \t\n,;:.->→–—")
    if rest and not places[-1][1]:
        places[-1] = (places[-1][0], rest[1:-1] if rest[0] in "([" and rest[-1] in ")]" else rest)
    return [*places]


def _bare_places(line: str, output: str, within: str) -> list[tuple[str | None, str]]:
    """Places of a line without quotes around its words."""
    if match := re.fullmatch(r"((?:line|sentence|paragraph) \d{1,3}):\s*(\S.*)", line, re.DOTALL | re.IGNORECASE):
        return [(match[2], match[1])]
    if match := re.fullmatch(r"(.*\S)\s*[(\[]([^()\[\]\n]{1,200})[)\]][.,]?", line, re.DOTALL):
        words, comment = match.groups()
        if (_ABOUT.search(comment) and len(comment) < 60) or plain(words) in within:
            return [(words, comment)]
    for mark in (";", " / ", ", ", " and "):
        parts = [part.strip() for part in line.split(mark)] if output and len(line) < 2000 else []
        if len(parts) > 1 and all(len(part) > 1 and plain(part) in within for part in parts):
            return [(part, "") for part in parts]
    return [(line, "")]
