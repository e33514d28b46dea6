"""Phrases that reviews found hard to read, looked for in every page: `python docs/words.py` (part of `make lint`).

Each stands with what to write in its place. docs/pages/project/style.md has the rules behind them.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The style page quotes what it forbids.
STYLE = ROOT / "docs/pages/project/style.md"
PHRASES = {
    r"\band (says|said|say) so\b": "with a note; and the report shows it",
    r"\banew\b": "again",
    r"\bso many\b": "that many, or the number",
    r"\b(goes|go|gone|went) on with\b": "continues, resumes",
    r"\bpeople's (scores|ratings)\b": "human ratings",
    r"\bdamage[ds]?\b(?!\s*`)": "perturb, perturbed",
    r"\bis (said|told) here\b": "see here",
    r"\bof one's own\b": "of your own",
    r"\bnobody knows\b": "it is not known",
    r"\b(was|is|were) mended\b": "was fixed",
    r"\btoo dear\b": "too expensive",
    r"\bleaves the mean and\b": "takes no part in the mean and",
    r"\bwhatever it was\b": "of any kind",
    r"\bin place of both\b": "instead",
}


def pages() -> list[Path]:
    """Every page of the repository, in order, but for the style page and what is built or installed."""
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*.md"))
    kept = (path for path in found if not any(part == "build" or part.startswith(".") for part in path.parts[:-1]))
    return sorted(ROOT / path for path in kept if ROOT / path != STYLE)


def wrong(text: str) -> Iterator[tuple[int, str, str]]:
    """Line number, the phrase, and what to write instead. Code, quotations and names of options are left alone."""
    plain = re.sub(
        r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"", lambda found: re.sub(r"\S", " ", found[0]), text, flags=re.DOTALL
    )
    for phrase, instead in PHRASES.items():
        for found in re.finditer(phrase.replace(" ", r"\s+"), plain, re.IGNORECASE):
            yield text.count("\n", 0, found.start()) + 1, " ".join(found[0].split()), instead


def main() -> int:
    said = [
        f"{path.relative_to(ROOT)}:{line}: {phrase!r}: write {instead}"
        for path in pages()
        for line, phrase, instead in wrong(path.read_text(encoding="utf-8"))
    ]
    sys.stderr.write("".join(f"{line}\n" for line in said))
    return bool(said)


if __name__ == "__main__":
    sys.exit(main())
