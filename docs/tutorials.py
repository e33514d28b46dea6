"""Run the tutorials as a reader would: each in a fresh environment with only what it says to install.

    python docs/tutorials.py [NAME …]      # `make tutorials`; names of pages, such as fastapi; none: all

The blocks of a page run in their order in an empty folder: files with a title are written, `$ ` lines and blocks of
Python are run, and the first failure ends it, with its file, line and output. Pages with the same `pip install` line
share an environment; judgesmith alone is installed once, and copied. Stand-ins replace a reader's surroundings: the
checkout for PyPI's judgesmith, a server on loopback for the model, the demo's rows for `labels.csv` and
`outputs.jsonl`, a script for the person who labels.
"""

import argparse
import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracked import ROOMS, ROOT

PAGES = (
    ROOT / "README.md",
    ROOT / "docs/pages/start.md",
    *sorted((ROOT / "docs/pages/tutorials").glob("*.md")),
    *sorted((ROOT / "docs/pages/examples").iterdir()),
)
FENCE = re.compile(
    r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```", re.DOTALL | re.MULTILINE
)
MODEL = "openai/gpt-4o-mini"
FREE = "openai/fake"
#: What a command names -> what stands for it, as the server speaks OpenAI's protocol.
INSTEAD = {
    # A model of one's own has no price, so that nobody is asked before a search.
    "ollama_chat/llama3.1:8b": FREE,
    "judgesmith demo --live": f"judgesmith demo --live --lm {FREE}",
}
#: An environment is made before the page is run, and checkouts have their own tests.
NOT_RUN = re.compile(r"python3 -m venv|pip install|make ")
CELLS = """
import json, sys
names = {}
cells = json.loads(open(sys.argv[1], encoding="utf-8").read())["cells"]
for number, cell in enumerate((c for c in cells if c["cell_type"] == "code"), start=1):
    exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
"""


class Failed(Exception):
    """A step of a page did not do what the page says."""


@dataclass(frozen=True)
class Step:
    """A part of a page.

    kind: "file" (its name is `title`), "command" or "python". code: the exit code that the page names.
    """

    line: int
    kind: str
    text: str
    title: str = ""
    code: int = 0

    @property
    def words(self) -> list[str]:
        """The words of a command."""
        return shlex.split(self.text, comments=True)


def steps(text: str) -> Iterator[Step]:
    """Yield the files to write and the commands to run, in order."""
    for match in FENCE.finditer(text):
        language, title, block = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        if title:
            yield Step(line, "file", block, title)
        elif language == "console":
            for hit in re.finditer(r"^\$ ((?:.*\\\n)*.*)$", block, re.MULTILINE):
                code = re.search(r"# exit code (\d+)", hit[1])
                at = line + 1 + block.count("\n", 0, hit.start())
                yield Step(
                    at,
                    "command",
                    re.sub(r"\\\n\s*", " ", hit[1]),
                    code=int(code[1]) if code else 0,
                )
        elif language == "python":
            yield Step(line, "python", block)


def demo_rows() -> list[dict[str, Any]]:
    """Return the demo's labelled rows."""
    text = (ROOT / "datasets/demo/labels.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def rate(server: Any) -> None:
    """Answer as the tutorials' model: near the human score for the demo's rows, any score for others."""
    from judgesmith.testing.fake import judging

    human = {row["output"]: row["score"] for row in demo_rows()}
    server.answer = judging(
        lambda ask: human.get(ask.judged, 3) * 16 + len(ask.judged) % 20
    )


def person(words: list[str]) -> list[str]:
    """Answer every row of `judgesmith label …` in a rater's place, as its page needs a browser.

    Returns the command that exports the answers.
    """
    from judgesmith.rooms.labelling.app import Desk, Event
    from judgesmith.rooms.labelling.command import Label
    from judgesmith.rooms.labelling.run import open_store

    if "--export-only" in words:
        return words
    rows, *words = (word for word in words[2:] if word != "--json")
    options = dict(zip(words[::2], words[1::2], strict=True))
    guidelines = Path(options["--guidelines"]) if "--guidelines" in options else None
    wanted = Label(
        rows=rows,
        kind=options.get("--kind"),
        n=int(options["--n"]),
        repeats=float(options.get("--repeats", 0)) or None,
        guidelines=guidelines,
        order=options.get("--order", "file"),
    )
    opened = open_store(wanted.request())
    desk = Desk(opened.store, opened.task)
    for i in range(100):
        if (unit := desk.next("Ada")["unit"]) is None:
            break
        desk.take(
            Event(
                action="answer",
                rater="Ada",
                unit=unit["key"],
                turn=unit["turn"],
                request=f"{unit['key']}-{unit['turn']}".ljust(16),
                answer={"score": 1 + i % 4}
                if wanted.kind is None
                else {wanted.kind: ("fail", "pass")[i % 2]},
            )
        )
    opened.store.close()
    return [
        "judgesmith",
        "label",
        rows,
        "--export-only",
        "--export",
        options["--export"],
    ]


# A fresh environment ------------------------------------------------------------------------------------------------


def needs(page: Path) -> tuple[str, ...]:
    """Return the packages that the page installs; judgesmith if it names none."""
    found = steps(page.read_text(encoding="utf-8")) if page.suffix == ".md" else ()
    words = [
        step.words[2:]
        for step in found
        if step.kind == "command" and step.words[:2] == ["pip", "install"]
    ]
    return tuple(
        dict.fromkeys(word for line in words for word in line if word != "-e")
    ) or ("judgesmith",)


def by_needs(pages: Iterable[Path]) -> dict[tuple[str, ...], list[Path]]:
    """Return the pages by their needs: one environment each."""
    result: dict[tuple[str, ...], list[Path]] = {}
    for page in pages:
        result.setdefault(needs(page), []).append(page)
    return result


def wheel(folder: Path) -> Path:
    """Build a wheel from a copy of the checkout, in which pip would leave its build."""
    copy = folder / "checkout"
    skip = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ROOMS:
        shutil.copytree(ROOT / name, copy / name, ignore=skip)
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, copy)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "-w",
        str(folder),
        str(copy),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise Failed(f"no wheel of the checkout:\n{done.stdout}{done.stderr}")
    (built,) = folder.glob("judgesmith-*.whl")
    return built


def install(environment: Path, wanted: Iterable[str], built: Path) -> None:
    """Install packages, with the checkout's wheel for judgesmith's name, wheel or clone (`.[local]`)."""
    words = [
        re.sub(r"^(?:(?:\./)?judgesmith[^\[]*|\.)(\[.*\])?$", rf"{built}\1", word)
        for word in wanted
    ]
    command = [
        str(environment / "bin/python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
    ]
    done = subprocess.run(
        [*command, *words], capture_output=True, text=True, timeout=900
    )
    if done.returncode:
        raise Failed(f"pip install {' '.join(wanted)}:\n{done.stdout}{done.stderr}")


def plain_environment(place: Path, built: Path) -> Path:
    """Provide an environment with judgesmith alone, which every page needs.

    It is installed once, with the modules that all commands import compiled.
    """
    venv.create(place, with_pip=True)
    install(place, ["judgesmith"], built)
    subprocess.run(
        [
            place / "bin/python",
            "-c",
            "import dspy, matplotlib.pyplot, optuna, pandas, scipy.stats",
        ],
        check=True,
    )
    return place


def copied(environment: Path, place: Path) -> Path:
    """Return an environment with the same files under another name; its scripts start its own Python."""
    shutil.copytree(environment, place, symlinks=True, copy_function=os.link)
    old, new = (str(one).encode() for one in (environment, place))
    for path in (place / "bin").iterdir():
        if not path.is_symlink() and (text := path.read_bytes()).startswith(
            b"#!" + old + b"/"
        ):
            mode = path.stat().st_mode
            path.unlink()  # or the other environment's script would change, too
            path.write_bytes(text.replace(old, new))
            path.chmod(mode)
    return place


def environment_of(place: Path, bin_: Path, base: str) -> dict[str, str]:
    """Return a reader's environment: no settings of this one, no cache, no model on this machine."""
    kept = {
        k: v
        for k, v in os.environ.items()
        if not re.match(r"JUDGESMITH_|PYTHON|OPENAI_|PYTEST_|VIRTUAL_ENV", k)
    }
    (place / "home").mkdir(parents=True, exist_ok=True)
    return kept | {
        "PATH": f"{bin_}{os.pathsep}{kept['PATH']}",
        "HOME": str(place / "home"),
        "JUDGESMITH_CACHE": str(place / "calls.sqlite"),
        "OPENAI_BASE_URL": base,
        "OPENAI_API_KEY": "unused",
        "OLLAMA_HOST": "http://127.0.0.1:9",
    }


# Running ------------------------------------------------------------------------------------------------------------


def run_page(page: Path, folder: Path, environment: dict[str, str]) -> int:
    """Return every step of a page; how many commands and blocks ran. Raises Failed for the first that fails."""
    folder.mkdir(parents=True)
    if page.suffix == ".ipynb":
        run_step(
            page, Step(1, "cells", ""), folder, environment | {"JUDGESMITH_LM": MODEL}
        )
        return 1
    if page.name in ("README.md", "start.md"):
        give(folder)
    ran = 0
    for step in steps(page.read_text(encoding="utf-8")):
        if step.kind == "file":
            path = folder / step.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text, encoding="utf-8")
        elif step.kind == "python" or not NOT_RUN.match(step.text):
            run_step(page, step, folder, environment)
            ran += 1
    return ran


def give(folder: Path) -> None:
    """Write a reader's files: labels, and outputs to score."""
    rows = demo_rows()[:24]
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(
            file, ["doc_id", "source", "output", "score"], extrasaction="ignore"
        )
        writer.writeheader()
        writer.writerows(rows)
    (folder / "outputs.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )


def run_step(page: Path, step: Step, folder: Path, environment: dict[str, str]) -> None:
    """Run a step of a page."""
    text = step.text
    for name, other in INSTEAD.items():
        text = text.replace(name, other)
    match step.kind:
        case "cells":
            command = ["python", "-c", CELLS, str(page)]
        case "python":
            command = ["python", "-c", text]
        case _ if step.words[:2] == ["judgesmith", "label"]:
            command = ["python", str(Path(__file__).resolve()), "--person", text]
        case _:
            command = ["bash", "-c", text]
    where = f"{page.relative_to(ROOT)}:{step.line}"
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(
            f"{where}: {step.text or page.name}\nnot done after {error.timeout:.0f} s"
        ) from None
    if done.returncode != step.code:
        line = f"exit code {done.returncode} where the page says {step.code}"
        raise Failed(
            f"{where}: {step.text or page.name}\n{line}\n{done.stdout[-3000:]}"
        )


def run_pages(
    wanted: tuple[str, ...], pages: Iterable[Path], plain: Path, built: Path, base: str
) -> None:
    """Run pages with the same needs in an environment of their own.

    base: the server's address.
    """
    started = time.monotonic()
    place = Path(tempfile.mkdtemp(dir=plain.parent))
    environment = copied(plain, place / "venv")
    if wanted != ("judgesmith",):
        install(environment, wanted, built)
    print(
        f"pip install {' '.join(wanted)}: {time.monotonic() - started:.0f} s",
        flush=True,
    )
    for page in pages:
        started = time.monotonic()
        ran = run_page(
            page, place / page.stem, environment_of(place, environment / "bin", base)
        )
        print(
            f"{page.relative_to(ROOT)}: {ran} run, {time.monotonic() - started:.0f} s",
            flush=True,
        )


def main() -> int:
    """Run the pages named, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="of pages, without their ending"
    )
    parser.add_argument("--person", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.person:  # in a reader's environment
        return subprocess.run(
            person(shlex.split(arguments.person, comments=True))
        ).returncode
    sys.path.insert(0, str(ROOT / "tests/support"))
    from loopback import running_server

    unknown = set(arguments.names) - {page.stem for page in PAGES}
    if unknown:
        parser.error(
            f"no page {', '.join(sorted(unknown))}; there are {', '.join(page.stem for page in PAGES)}"
        )
    wanted = [
        page for page in PAGES if not arguments.names or page.stem in arguments.names
    ]
    with (
        tempfile.TemporaryDirectory(prefix="judgesmith-tutorials-") as temporary,
        running_server() as server,
    ):
        rate(server)
        try:
            built = wheel(Path(temporary))
            plain = plain_environment(Path(temporary) / "plain", built)
            with ThreadPoolExecutor(2) as pool:
                groups = by_needs(wanted).items()
                runs = [
                    pool.submit(run_pages, words, pages, plain, built, server.base)
                    for words, pages in groups
                ]
                for run in runs:
                    run.result()
        except Failed as failed:
            print(failed, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
