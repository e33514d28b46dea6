"""Write llms.txt, the list of pages for language models, from the site's pages.

    python docs/llms.py [--check]

--check changes nothing and fails if the list is another.
"""

import re
import sys
from collections.abc import Iterator
from typing import Any

import yaml
from tracked import ROOT

PAGE = ROOT / "docs/pages/llms.txt"
TOP = """# judgesmith

> Makes LLM judges from a few dozen human ratings, and measures how far they can be relied on: `check` (may a judge be
> trusted?), `compare` (is the new version better?), `compile`, `score`, `label`, `report`, `serve`.

Start with SKILL.md: when to use which command, and how to read `--json`. `judgesmith list schemas COMMAND` prints the
schema of a command's output, `judgesmith list commands` all commands with the exit codes.

- [SKILL.md](SKILL.md): four jobs for an agent, each with its command
"""


def pages(entries: list[Any], heading: str = "") -> Iterator[tuple[str, str]]:
    """Yield the pages of the navigation that lie in docs/pages, with their headings."""
    for entry in entries:
        title, value = (
            next(iter(entry.items())) if isinstance(entry, dict) else ("", entry)
        )
        if isinstance(value, list):
            yield from pages(value, title)
        elif (ROOT / "docs/pages" / value).suffix == ".md" and (
            ROOT / "docs/pages" / value
        ).is_file():
            yield heading or "Start", value


def about(text: str) -> tuple[str, str]:
    """Return the title of a page, and its first sentence behind a colon; "" where a list or code begins."""
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    body = text.partition("\n\n")[2]
    prose = next(
        (
            part
            for part in body.split("\n\n")
            if re.match(r"[A-Z`*\[]", part) and not part.startswith("```")
        ),
        "",
    )
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(prose.split()))
    first = re.split(r"(?<=[.?:])\s", plain, maxsplit=1)[0]
    said = f": {first}" if first and not first.endswith(":") else ""
    return (title[1] if title else ""), said


def listed() -> str:
    """Return the list."""
    navigation = yaml.safe_load((ROOT / "docs/mkdocs.yml").read_text("utf-8"))["nav"]
    lines = [TOP]
    before = ""
    for heading, page in pages(navigation):
        if heading != before:
            lines.append(f"## {heading}\n")
            before = heading
        title, said = about((ROOT / "docs/pages" / page).read_text("utf-8"))
        lines.append(f"- [{title}](docs/pages/{page}){said}")
    return "\n".join(lines).replace("\n## ", "\n\n## ").rstrip() + "\n"


def main() -> int:
    """Write the list, or check it."""
    if "--check" in sys.argv:
        return int(PAGE.read_text("utf-8") != listed())
    PAGE.write_text(listed(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
