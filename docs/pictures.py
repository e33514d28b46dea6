"""Take a picture of each page that commands write, from the demo's rows: pages/assets/*.png. Needs Chromium.

    python docs/pictures.py [NAME...]

pictures.json has a digest of each page that was photographed. A test makes the pages again and compares, so that a
picture is of the page as it is.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ASSETS = ROOT / "docs/pages/assets"
KEPT = ASSETS / "pictures.json"
ROWS = ROOT / "datasets/demo/replies.jsonl"
#: Width and height of a picture, in pixels.
SIZE = (1100, 800)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --virtual-time-budget=5000"
)
#: The page that a command writes of the demo's rows: the words behind `judgesmith`.
WRITTEN = {
    "report": "report qwen.jsonl -o page.html",
    "check": "check qwen.jsonl -o page.html",
    "certificate": "check qwen.jsonl --certificate page.html",
    "compare": "compare qwen.jsonl -o page.html",
}
#: The page that raters see, which is served.
LABEL = ROOT / "src/judgesmith/rooms/labelling"
#: What differs from one run, release or machine to the next: dates, our version, and how figures are drawn.
VARIES = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?|judgesmith \d+\.\d+\.\d+|<svg.*?</svg>",
    re.DOTALL,
)


def written(name: str, folder: Path, run: Callable[..., object]) -> Path:
    """Return the page of a name, which a command wrote into a folder.

    run: calls the command line with words, in the folder.
    """
    shutil.copy(ROWS, folder / "qwen.jsonl")
    run(*WRITTEN[name].split())
    return folder / "page.html"


def digest(page: Path) -> str:
    """Return a digest of a page: its text, markup, style and scripts."""
    return _digest(VARIES.sub("", page.read_text(encoding="utf-8")))


def digest_of_label() -> str:
    """Return a digest of what the label page is made of."""
    parts = [LABEL / f"page.{kind}" for kind in ("css", "html", "js")]
    return _digest("".join(part.read_text(encoding="utf-8") for part in parts))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def photograph(address: str, picture: Path) -> None:
    """Take a picture of the top of a page.

    Raises:
        SystemExit: If there is no Chromium.
    """
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no Chromium for the pictures: install it")
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser,
            *FLAGS.split(),
            f"--user-data-dir={profile}",
            "--window-size={},{}".format(*SIZE),
            f"--screenshot={picture}",
            address,
        ]
        subprocess.run(command, check=True, capture_output=True)


@contextmanager
def labelling(folder: Path) -> Iterator[str]:
    """Serve the label page of the demo's rows, and yield its address."""
    shutil.copy(ROWS, folder / "qwen.jsonl")
    words = "label qwen.jsonl --kind binary --rater Ada --no-browser"
    process = subprocess.Popen(
        [Path(sys.executable).with_name("judgesmith"), *words.split()],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.search(r"at (http://\S+)", line):
                yield found[1]
                break
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    """Take the pictures named, or all."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for name in sys.argv[1:] or [*WRITTEN, "label"]:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)

            def run(*words: str, folder: Path = folder) -> None:
                command = [Path(sys.executable).with_name("judgesmith"), *words]
                subprocess.run(command, cwd=folder, check=True, capture_output=True)

            if name == "label":
                with labelling(folder) as address:
                    photograph(address, ASSETS / "label.png")
                kept[name] = digest_of_label()
            else:
                page = written(name, folder, run)
                photograph(page.as_uri(), ASSETS / f"{name}.png")
                kept[name] = digest(page)
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
