"""Search pages, and strings and comments of the code, for phrases that reviews found hard to read.

    python docs/words.py      # part of `make lint`

words.yaml has each with a replacement; docs/pages/project/style.md has the rules behind them. Its first tables, of the
one word for each thing and of terms of the house, are held by tests/test_words.py.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml
from tracked import ROOMS, ROOT, tracked

#: The style page quotes what it forbids.
STYLE = ROOT / "docs/pages/project/style.md"
_TABLES = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
PHRASES: dict[str, str] = _TABLES["phrases"]
IN_PAGES: dict[str, str] = _TABLES["pages"]
#: Another word for a thing -> the one word.
TERMS: dict[str, str] = {
    other: word
    for word, about in _TABLES["terms"].items()
    for other in about["instead"]
}
HOUSE: list[str] = _TABLES["house"]
#: The pages that a stranger reads first.
FIRST = ("README.md", "docs/pages/start.md", "docs/pages/tutorials")
#: What is searched for phrases in code; tests quote what models, people and files say.
CODE = (*ROOMS, "docs")
#: Each phrase as it may run over lines, comments and strings of code, with a word that it cannot do without.
_LOOSE = [
    (
        max(
            re.findall("[a-z']+", re.sub(r"\\.|\[.*?\]|\(.*?\)", " ", phrase)), key=len
        ),
        re.compile(phrase.replace(" ", r"""[\s"'#:]+(?:f["']\s*)?"""), re.IGNORECASE),
    )
    for phrase in PHRASES
]
_TEXTS = {tokenize.STRING, tokenize.COMMENT}
#: Since Python 3.12 an f-string is several tokens, its expressions among them.
_BEGINS = getattr(tokenize, "FSTRING_START", None)
_ENDS = getattr(tokenize, "FSTRING_END", None)
_BETWEEN = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def pages() -> list[Path]:
    """List every page of the repository but the style page."""
    return [path for path in tracked(".md") if path != STYLE]


def sources() -> list[Path]:
    """List every Python file whose words are checked."""
    return [path for path in tracked(".py") if path.relative_to(ROOT).parts[0] in CODE]


def wrong(
    text: str, phrases: Mapping[str, str] = PHRASES | IN_PAGES
) -> Iterator[tuple[int, str, str]]:
    """Yield line number, the phrase, and its replacement; code, quotations and names of options are left alone."""
    plain = re.sub(
        r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"",
        lambda match: re.sub(r"\S", " ", match[0]),
        text,
        flags=re.DOTALL,
    )
    for phrase, instead in phrases.items():
        for match in re.finditer(phrase.replace(" ", r"\s+"), plain, re.IGNORECASE):
            yield (
                text.count("\n", 0, match.start()) + 1,
                " ".join(match[0].split()),
                instead,
            )


def wrong_in_code(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield the same for the strings, docstrings and comments of Python code."""
    lower = source.lower()
    if not any(word in lower and loose.search(source) for word, loose in _LOOSE):
        return  # most files: reading tokens is slow
    for start, text in _texts(source):
        for line, phrase, instead in wrong(text, PHRASES):
            yield start + line - 1, phrase, instead


def _texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each string or comment; those with nothing between them are one."""
    start = 0
    text = ""
    inside = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == _BEGINS:
            start = start or token.start[0]
            inside = inside + 1
        elif token.type == _ENDS:
            text = text + "\n"
            inside = inside - 1
        elif inside:
            text += token.string
        elif token.type in _TEXTS:
            start = start or token.start[0]
            kept = re.sub(
                r"^[a-zA-Z]{0,2}(\"\"\"|\"|')(.*)\1$",
                r"\2",
                token.string,
                flags=re.DOTALL,
            )
            text += kept.lstrip("#:") + "\n"
        elif token.type not in _BETWEEN and text:
            yield start, text
            start = 0
            text = ""
    if text:
        yield start, text


def named_otherwise(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line number, a word that a page has for a thing, and the one word for it."""
    return wrong(text, TERMS)


def named_otherwise_in_code(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield the same for what code prints: its strings, docstrings and comments apart."""
    tree = ast.parse(source)
    silent = {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)
    }  # docstrings
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node in silent:
                continue
            for _, word, instead in wrong(node.value, TERMS):
                yield node.lineno, word, instead


def main() -> None:
    """Print each phrase with its replacement. It gates nothing."""
    lines = [
        f"{path.relative_to(ROOT)}:{line}: {phrase!r}: write {instead}"
        for paths, check in ((pages(), wrong), (sources(), wrong_in_code))
        for path in paths
        for line, phrase, instead in check(path.read_text(encoding="utf-8"))
    ]
    sys.stderr.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
