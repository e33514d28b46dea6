"""Builds the site from pages where they stand in the repository, so that each text exists once.

`PAGES` says where a file outside docs/pages is in the site. Links in any page are relative to the file itself, as
GitHub follows them; here they are turned into links of the site. Notebooks become pages with their saved outputs.
"""

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
OWN = "docs/pages/"
#: File in the repository -> file in the site.
PAGES = {
    "README.md": "index.md",
    "programs/DSPY.md": "howto/dspy.md",
    "optimizers/TRAINING.md": "howto/train.md",
    "experiments/PRODUCTION.md": "howto/production.md",
    "experiments/OPTIMIZERS.md": "howto/optimizers.md",
    "experiments/DISCERNMENT.md": "howto/discernment.md",
    "experiments/RESULTS.md": "results/index.md",
    "SECURITY.md": "concepts/security.md",
    "SKILL.md": "project/skill.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
} | {
    f"experiments/{folder}/{path.name}": f"{folder}/{path.name}"
    for folder in ("results", "results/data", "figures")
    for path in sorted((ROOT / "experiments" / folder).iterdir())
    if path.is_file()
}
SITE_OF = PAGES | {
    (OWN + path): path.removesuffix(".ipynb") + ".md"
    if path.endswith(".ipynb")
    else path
    for path in (
        found.relative_to(ROOT / OWN).as_posix()
        for found in sorted((ROOT / OWN).rglob("*.*"))
    )
}
FROM = {site: path for path, site in SITE_OF.items()}
LOADED = re.compile(
    r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=\"((?:https?:)?//[^\"]+)\""
)
LINK = re.compile(r"(\]\()(?!\w+:|#)([^)\s#]+)(#[^)\s]*)?(\))")


def notebook(path: Path) -> str:
    """Return the notebook as markdown: its texts, its code, and what each cell printed."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(
            text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```"
        )
        for output in cell.get("outputs", []):
            shown = output.get("text") or output.get("data", {}).get("text/plain") or []
            if shown:
                parts.append(f"```text\n{''.join(shown).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


@event_priority(100)
def on_config(config: Any) -> Any:
    """Point the API reference at the package."""
    config.plugins["mkdocstrings"].config.handlers["python"]["paths"] = [
        str(ROOT / "src")
    ]
    return config


def on_post_build(config: Any) -> None:
    """Refuse a page that would load anything from another place: readers may be offline, or watched."""
    for page in Path(config.site_dir).rglob("*.html"):
        if match := LOADED.search(page.read_text(encoding="utf-8")):
            raise PluginError(f"{page.name} loads {match[1]}")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside docs/pages, and leave notebooks to their own pages."""
    for path, site in SITE_OF.items():
        if path in PAGES:
            files.append(File.generated(config, site, abs_src_path=str(ROOT / path)))
        elif path.endswith(".ipynb"):
            files.remove(files.src_uris[path.removeprefix(OWN)])
            files.append(File.generated(config, site, content=notebook(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Rewrite links between pages to their places on the site."""
    here = posixpath.dirname(FROM[page.file.src_uri])
    place = posixpath.dirname(page.file.src_uri)

    def linked(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(here, found[2]))
        if path not in SITE_OF:
            raise PluginError(
                f"{FROM[page.file.src_uri]}: the site has no page for the link to {found[2]}"
            )
        return f"{found[1]}{posixpath.relpath(SITE_OF[path], place or '.')}{found[3] or ''}{found[4]}"

    return LINK.sub(linked, markdown)
