"""What judgesmith requires is little and declared; what only some need is an extra, which an error names."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from json_lines import write
from patience import HANG

from judgesmith.datasets.perturbations.base import sentences
from judgesmith.errors import MissingExtraError
from judgesmith.extras import from_extra
from judgesmith.parts import plugin
from judgesmith.programs.readings.bindings import graph, llama, weights
from judgesmith.programs.readings.bindings.torch_reader import TorchReader
from judgesmith.rooms.engines.batches import BatchScorer
from judgesmith.rows import rows_of

pytestmark = pytest.mark.text

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "src",
    "signatures",
    "programs",
    "optimizers",
    "datasets",
    "experiments/studies",
)
#: The user asked for these; what else is required has its reason on the page of the architecture.
CHOSEN = {"dspy", "litellm", "ollama", "scipy", "numpy", "pandas", "optuna"}
#: Modules that come with a declared package and are part of its interface.
COMES_WITH = {
    "markupsafe": "jinja2",
    "pydantic_core": "pydantic",
    "openai": "litellm",
    "tqdm": "dspy",
    "fsspec": "huggingface-hub",
    "starlette": "fastapi",
}
#: What runs in a project that has these, and says so itself.
HOSTS = {"pytest", "setuptools", "opentelemetry", "polars"}
#: Modules of extras that everything else must work without. (tokenizers and huggingface-hub come with what
#: is required.)
OPTIONAL = (
    "gguf",
    "mlflow",
    "openvino",
    "pyarrow",
    "ray",
    "rouge_score",
    "sacrebleu",
    "sentencex",
    "xllamacpp",
)


def declared() -> dict[str, set[str]]:
    """The extras that install each package, by its name; "" is a plain install."""
    result: dict[str, set[str]] = {}
    for requirement in requires("judgesmith") or ():
        name = re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        result.setdefault(name, set()).add(extra[1] if extra else "")
    return result


@cache
def imports() -> Sequence[tuple[str, str, bool]]:
    """(file, package, whether on import of the file) of every import of others' modules."""
    return tuple(_imports())


def _imports() -> Iterator[tuple[str, str, bool]]:
    for path in (one for room in ROOMS for one in (ROOT / room).rglob("*.py")):
        if path.is_symlink() or "bench" in path.relative_to(ROOT).parts:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names = [node.module]
            for name in names:
                root = name.partition(".")[0]
                if root not in {*sys.stdlib_module_names, "judgesmith"}:
                    yield str(path.relative_to(ROOT)), root, node.col_offset == 0


def _installed_by(package: str, distributions: Mapping[str, Sequence[str]]) -> set[str]:
    """The names under which a package may be required."""
    named = {COMES_WITH.get(package, package), *distributions.get(package, ())}
    return {name.lower().replace("_", "-") for name in named}


def block(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """Make packages look as if they were not installed."""
    loaded = [name for name in sys.modules if name.partition(".")[0] in packages]
    for name in {*loaded, *packages}:
        monkeypatch.setitem(sys.modules, name, None)


def test_a_plain_install_requires_what_the_user_chose() -> None:
    hard = {name for name, extras in declared().items() if "" in extras}
    assert hard >= CHOSEN


def test_every_import_is_declared() -> None:
    names = declared()
    distributions = packages_distributions()
    missing = {
        (file, package)
        for file, package, _ in imports()
        if package not in HOSTS
        and not names.keys() & _installed_by(package, distributions)
    }
    assert missing == set()


def test_the_page_of_the_architecture_names_each_requirement() -> None:
    page = (ROOT / "docs/pages/concepts/architecture.md").read_text(encoding="utf-8")
    section = page.partition("## What it requires")[2].partition("\n## ")[0]
    hard = {name for name, extras in declared().items() if "" in extras}
    assert {name for name in hard if f"`{name}`" not in section} == set()


ROWS = [
    {
        "id": f"r{n}",
        "source": f"Where is the {n}th station?",
        "output": f"r{n:03d} of the notice " + "ag" * n,
        "score": n * 5,
    }
    for n in range(20)
]
#: Called with the command line, a saved judge and the model's address; returns what the command said.
Command = Callable[[Any, Path, str], Any]


def _parquet_labels(cli: Any, judge: Path, base: str) -> Any:
    Path("labels.parquet").write_bytes(b"PAR1")
    return cli("compile", "labels.parquet", "--dry-run")


def _parquet_scores(cli: Any, judge: Path, base: str) -> Any:
    rows = write(Path("rows.jsonl"), ROWS)
    return cli("score", rows, "--judge", judge, "--api-base", base, "-o", "o.parquet")


def _address(cli: Any, judge: Path, base: str) -> Any:
    return cli("score", "s3://bucket/rows.jsonl", "--judge", judge)


def _on_ray(cli: Any, judge: Path, base: str) -> Any:
    rows = write(Path("rows.jsonl"), ROWS)
    return cli("score", rows, "--judge", judge, "--on", "ray", "-o", "scored")


def _discern(cli: Any, judge: Path, base: str) -> Any:
    rows = write(Path("rows.jsonl"), ROWS)
    return cli("discern", judge, rows, "--api-base", base)


def _embedded(cli: Any, judge: Path, base: str) -> Any:
    rows = write(Path("rows.jsonl"), ROWS)
    return cli("score", rows, "--judge", judge, "--lm", "local/smollm2-135m")


def _mlflow(cli: Any, judge: Path, base: str) -> Any:
    return cli("compile", write(Path("rows.jsonl"), ROWS), "--mlflow", "mine")


def _metric(cli: Any, judge: Path, base: str) -> Any:
    rows = [row | {"judge": 1, "reference": "a notice"} for row in ROWS]
    return cli("evaluate", write(Path("rows.jsonl"), rows), "metric/chrf")


#: (extra, the package that is missing, the command that needs it)
COMMANDS: dict[str, tuple[str, str, Command]] = {
    "labels in Parquet": ("tables", "pyarrow", _parquet_labels),
    "scores in Parquet": ("tables", "pyarrow", _parquet_scores),
    "object storage": ("tables", "pyarrow", _address),
    "a cluster": ("ray", "ray", _on_ray),
    "sentences": ("discern", "sentencex", _discern),
    "an embedded model": ("local", "xllamacpp", _embedded),
    "logs": ("mlflow", "mlflow", _mlflow),
    "another metric": ("metrics", "sacrebleu", _metric),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_lacks_an_extra_names_it_in_one_line(
    name: str,
    cli: Any,
    judge_file: Path,
    server: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    extra, package, command = COMMANDS[name]
    monkeypatch.chdir(tmp_path)
    block(monkeypatch, package)
    done = command(cli, judge_file, server.base)
    assert done.code == 2
    problem = [line for line in done.err.splitlines() if "pip install" in line]
    assert len(problem) == 1, done.err
    assert f"pip install 'judgesmith[{extra}]'" in problem[0]
    assert "Traceback" not in done.err
    assert server.asks == []


#: (extra, the package that is missing, what is called)
CALLS: dict[str, tuple[str, str, Callable[[], object]]] = {
    "BatchScorer": ("tables", "pyarrow", lambda: BatchScorer("judge.json")),
    "a table of Arrow": ("tables", "pyarrow", lambda: list(rows_of(ArrowTable()))),
    "sentences": ("discern", "sentencex", lambda: sentences("It ends. Or not.")),
    "llama.cpp": ("local", "xllamacpp", llama.library.__wrapped__),
    "OpenVINO": ("local", "openvino", graph.openvino),
    "weights": ("local", "gguf", lambda: weights.Weights(Path("none.gguf"))),
    "torch": ("torch", "torch", lambda: TorchReader(Path("none"))),
}


class ArrowTable:
    """A table that hands itself over by Arrow's interface."""

    def __arrow_c_stream__(self) -> None:
        raise AssertionError("it is not read without Arrow")


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_lacks_an_extra_names_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra, package, call = CALLS[name]
    monkeypatch.delenv("JUDGESMITH_THREADS", raising=False)
    block(monkeypatch, package)
    with pytest.raises(MissingExtraError) as error:
        call()
    message = str(error.value)
    assert f"needs {package}, which is not installed" in message
    assert message.endswith(f"pip install 'judgesmith[{extra}]'")


def test_a_part_that_cannot_be_imported_names_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    block(monkeypatch, "pyarrow")
    for module in ("ray", "folder"):
        monkeypatch.delitem(
            sys.modules, f"judgesmith.rooms.engines.{module}", raising=False
        )
    with pytest.raises(MissingExtraError, match=r"'judgesmith\[ray\]'"):
        plugin("scoring", "ray")


def test_a_package_that_fails_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "halfway.py").write_text("raise ImportError('libhalf is too old')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match="fails: libhalf is too old"):
        from_extra("tables", "Parquet", "halfway")


#: Runs commands one after the other in a Python that has no extra from its start; pandas looks for pyarrow then.
WITHOUT = """
import json, sys
sys.modules.update(dict.fromkeys(json.loads(sys.argv[1])))
from judgesmith.cli.main import main
for words in json.loads(sys.argv[2]):
    sys.argv = ["judgesmith", *words]
    try:
        main()
    except SystemExit as stopped:
        if stopped.code:
            sys.exit(f"{words[0]}: {stopped.code}")
"""


def test_what_most_people_run_needs_no_extra(
    judge_file: Path, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(ROWS).to_csv("labels.csv", index=False)
    model = ("--lm", "openai/fake", "--api-base", server.base)
    score = ("score", "labels.csv", "--judge", str(judge_file), *model[2:])
    commands = [
        ("compile", "labels.csv", "--method", "direct", *model, "-o", "made.json"),
        ("show", "made.json"),
        (*score, "-o", "scored.jsonl"),
        (*score, "-o", "scored.csv"),
        ("evaluate", "scored.jsonl", "--human", "score", "-o", "agreement.html"),
        ("report", "scored.jsonl", "-o", "report.html"),
    ]
    words = [sys.executable, "-c", WITHOUT, json.dumps(OPTIONAL), json.dumps(commands)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    assert "<svg" in Path("agreement.html").read_text(encoding="utf-8")
    assert "of the notice" in Path("report.html").read_text(encoding="utf-8")
    assert len(Path("scored.csv").read_text("utf-8-sig").splitlines()) == len(ROWS) + 1


def test_nothing_that_everybody_imports_needs_an_extra() -> None:
    """Modules that import an extra's package when they are imported lie in rooms that are opened by name."""
    hard = {name for name, extras in declared().items() if "" in extras}
    distributions = packages_distributions()
    rooms = {
        "/".join(Path(file).parts[: 4 if "/rooms/" in file else 3])
        for file, package, at_once in imports()
        if at_once
        and package not in HOSTS
        and not hard & _installed_by(package, distributions)
    }
    assert rooms <= {
        "src/judgesmith/rooms/engines",
        "src/judgesmith/rooms/labelling",
        "src/judgesmith/rooms/serving",
        "src/judgesmith/running",
    }


def test_what_opens_no_judge_does_without_dspy(tmp_path: Path) -> None:
    """DSPy takes half of the second in which `check`, `compare`, `report` and the demo are to have answered."""
    code = """
import sys
import judgesmith.evaluating.run, judgesmith.comparing.page, judgesmith.reports.spans
from judgesmith.cli.main import main
for command in ("demo", "check qwen.jsonl", "compare qwen.jsonl", "report qwen.jsonl"):
    sys.argv = ["judgesmith", *command.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, (command, end.code)
    heavy = {"dspy", "litellm", "psutil"}
    if command == "demo":
        heavy.add("scipy.stats")  # a quarter of its time
    loaded = heavy & sys.modules.keys()
    print("\\n loaded by", command, sorted(loaded))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=HANG,
        cwd=tmp_path,
    )
    found = re.findall(r"^ loaded by (.+) (\[.*\])$", done.stdout, re.MULTILINE)
    assert len(found) == 4, done.stderr
    assert {loaded for _, loaded in found} == {"[]"}, found
