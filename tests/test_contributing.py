"""The examples of the page on plug-ins, as they stand there: built into a wheel, installed, and run."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from json_lines import lines, write
from loopback import Server, running_server

from judgesmith.programs.judge import Judge
from judgesmith.testing.fake import judging, make_rows, own_environment

pytestmark = pytest.mark.text

TEXT = (
    Path(__file__).resolve().parents[1] / "docs/pages/howto/extending.md"
).read_text(encoding="utf-8")
#: File name -> its text, for every block that names its file in the first line.
FILES: dict[str, str] = dict(
    re.findall(r"```\w+(?: title=\"|\n# )(\S+?)\"?\n(.*?)```", TEXT, re.DOTALL)
)
NEW = "import judgesmith as js; js.Judge(js.DirectScorer('fluency')).save('judge.json')"
COMMAND = "import sys; from judgesmith.cli.main import main; sys.argv[0] = 'judgesmith'; main()"


def python(
    *arguments: str | Path, folder: Path, site: Path | None = None, code: int = 0
) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(
        [*([str(site)] if site else []), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, (done.stdout + done.stderr)[-3000:]
    return done


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which a wheel of the examples was installed."""
    # Its version is looked up, not imported: setuptools refuses to be imported after the standard library's distutils.
    if int(version("setuptools").split(".")[0]) < 77:
        pytest.skip("setuptools is older than 77")
    package, target = (
        tmp_path_factory.mktemp("package"),
        tmp_path_factory.mktemp("site"),
    )
    for name, body in FILES.items():
        if not name.startswith("test_"):
            (package / name).parent.mkdir(exist_ok=True)
            (package / name).write_text(body, encoding="utf-8")
    python(
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "--target",
        target,
        package,
        folder=package,
    )
    assert {path.name for path in target.glob("*.py")} == {
        name
        for name in FILES
        if re.fullmatch(r"\w+\.py", name) and not name.startswith("test_")
    }
    return target


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    own_environment(monkeypatch, tmp_path)
    with running_server() as made:
        made.answer = judging(lambda ask: int(ask.mark[1:]) * 37 % 101)
        yield made


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """24 labelled rows, which the server scores as people did."""
    rows = [
        {
            "id": r.id,
            "source": r.source,
            "output": r.output,
            "doc_id": r.doc_id,
            "score": r.scores["overall"],
        }
        for r in make_rows(12, 2, lambda n: n * 37 % 101)
    ]
    return write(tmp_path / "labels.jsonl", rows)


def test_every_example_is_here() -> None:
    assert list(FILES) == [
        "pyproject.toml",
        "printable.py",
        "readers.py",
        "shortest.py",
        "numerals.py",
        "echo.py",
        "jaccard.py",
        "near.py",
        "towns/__init__.py",
        "towns/towns.jsonl",
        "pleas.py",
        "outputs.py",
        "shouting.py",
        "test_parts_of_mine.py",
    ]
    assert max(len(line) for line in TEXT.splitlines()) <= 130


def test_judge_and_optimizer_compile_and_score(
    site: Path, server: Server, labels: Path, tmp_path: Path
) -> None:
    python(
        "-c",
        COMMAND,
        "compile",
        labels,
        "--lm",
        "openai/fake",
        "--api-base",
        server.base,
        "--scale",
        "0",
        "100",
        "--method",
        "readers",
        "--readers",
        "a lawyer,a child,a poet",
        "--optimizer",
        "shortest",
        "-o",
        tmp_path / "judge.json",
        "--json",
        folder=tmp_path,
        site=site,
    )
    saved = json.loads((tmp_path / "judge.json").read_text(encoding="utf-8"))
    assert saved["program"]["kind"] == "readers"
    assert "a poet" in json.dumps(saved["program"])
    assert saved["provenance"]["optimizer"]["name"] == "shortest"
    assert {c["candidate"] for c in saved["provenance"]["candidates"]} == {
        "zero-shot",
        "shortest",
    }
    assert any("You are a poet." in ask.text for ask in server.judged)
    assert any(ask.shown for ask in server.judged)

    python(
        "-c",
        COMMAND,
        "score",
        labels,
        "--judge",
        tmp_path / "judge.json",
        "--api-base",
        server.base,
        "-o",
        tmp_path / "scored.jsonl",
        folder=tmp_path,
        site=site,
    )
    assert len(lines(tmp_path / "scored.jsonl")) == 24


READ = """
import numpy as np
from planted import PlantedReader
from judgesmith.optimizers.fitting.gaussian import gaussian
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.judge import table_of
from judgesmith.programs.readings.kinds import group_of, read_row
from judgesmith.programs.readings.passages import Text
row = read_row(PlantedReader(), Text("In 1999.", "In 1998 or 2003."), layers=1, counted=True)
assert row.numbers["numerals.new"] == 2 and group_of("numerals.new") == "numerals"
rows = [read_row(PlantedReader(), Text("In 1999.", f"In {'1998 ' * n}."), layers=1, counted=True) for n in range(6)]
head = gaussian(table_of(rows, [50.0] * 6, range(6)), np.arange(6.0), Experience(), own="direct").head
assert head.weights["numerals.new"][1] > 0, head.weights
"""


def test_the_reading_is_weighed_beside_the_others(site: Path, tmp_path: Path) -> None:
    path = os.pathsep.join([str(site), str(Path(__file__).parent / "support")])
    python("-c", READ, folder=tmp_path, site=Path(path))


def test_the_command_is_a_command(site: Path, labels: Path, tmp_path: Path) -> None:
    done = python(
        "-c", COMMAND, "outputs", labels, "--json", folder=tmp_path, site=site
    )
    assert json.loads(done.stdout) == {"outputs": 24, "documents": 12}
    assert (
        "outputs" in python("-c", COMMAND, "--help", folder=tmp_path, site=site).stdout
    )


def test_without_the_package_its_names_are_unknown(
    labels: Path, tmp_path: Path
) -> None:
    done = python(
        "-c",
        COMMAND,
        "compile",
        labels,
        "--method",
        "readers",
        "--dry-run",
        folder=tmp_path,
        code=2,
    )
    assert "'readers'" in done.stderr


def test_a_provider_opens_its_models(site: Path, labels: Path, tmp_path: Path) -> None:
    python("-c", NEW, folder=tmp_path, site=site)
    scored = ("score", labels, "--judge", "judge.json", "--lm", "shouting:m")
    python("-c", COMMAND, *scored, "-o", "scored.jsonl", folder=tmp_path, site=site)
    lines = (tmp_path / "scored.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["verdict"]["score"] for line in lines} == {5}
    listed = python("-c", COMMAND, "list", "models", folder=tmp_path, site=site)
    assert "shouting:" in listed.stdout


def test_texts_are_perturbed_by_the_example(
    site: Path, server: Server, labels: Path, tmp_path: Path
) -> None:
    from judgesmith.programs.active_critic.critic import ActiveCritic
    from judgesmith.programs.models.lm import Connection, language_model

    lm = language_model("openai/fake", connection=Connection(server.base))
    Judge(ActiveCritic("vanilla", explain="before", reading="said"), lm=lm).save(
        tmp_path / "judge.json"
    )
    python(
        "-c",
        COMMAND,
        "discern",
        tmp_path / "judge.json",
        labels,
        "--perturb",
        "echo",
        "--api-base",
        server.base,
        "-o",
        tmp_path / "pairs.jsonl",
        folder=tmp_path,
        site=site,
    )
    assert any(
        re.search(r"\b(\w+) \1\b", ask.judged.replace("again again", ""))
        for ask in server.judged
    )
    assert "echo" in (tmp_path / "pairs.jsonl").read_text(encoding="utf-8")


def test_metric_objective_set_and_screen_are_known(
    site: Path, server: Server, labels: Path, tmp_path: Path
) -> None:
    listed = python("-c", COMMAND, "list", "metrics", folder=tmp_path, site=site)
    assert "jaccard" in listed.stdout
    read = ("list", "data", "bench/towns", "--json")
    card = python("-c", COMMAND, *read, folder=tmp_path, site=site)
    assert json.loads(card.stdout)["rows_here"] == 8
    words = ("compile", labels, "--lm", "openai/fake", "--objective", "near")
    planned = python(
        "-c", COMMAND, *words, "--dry-run", "--json", folder=tmp_path, site=site
    )
    assert json.loads(planned.stdout)["objective"] == "near"


def test_the_examples_pass_the_contract_suites(site: Path, tmp_path: Path) -> None:
    (tmp_path / "test_parts_of_mine.py").write_text(
        FILES["test_parts_of_mine.py"], encoding="utf-8"
    )
    done = python(
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-n0",
        tmp_path,
        folder=tmp_path,
        site=site,
    )
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 30
