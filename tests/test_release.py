"""The workflow that releases: what it may do, and its check of tag, version and changelog."""

import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
NEW = "## [1.2.3] - 2026-12-01\n\n### Added\n- A thing.\n"


def test_only_what_publishes_may_ask_for_an_identity_and_only_after_the_checks() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML reads "on" as true
    assert (
        workflow["jobs"]["test"]["uses"] == "./.github/workflows/test.yml"
        and workflow["jobs"]["build"]["needs"] == "test"
    )
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert workflow["permissions"] == {"contents": "read"} and "permissions" not in build
    assert publish["permissions"] == {"id-token": "write"} and "secrets." not in str(workflow)  # no token
    assert publish["needs"] == "build" and publish["steps"][-1]["uses"].startswith("pypa/gh-action-pypi-publish@")
    runs = "\n".join(step.get("run", "") for step in build["steps"])
    assert 0 <= runs.index('check-release.sh "$TAG"') < runs.index("-m build") < runs.index("twine check --strict")


def test_pull_requests_are_tested_on_every_python_that_is_promised() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    assert "pull_request" in workflow[True] and workflow["permissions"] == {"contents": "read"}
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    promised = {
        name.rsplit(" ", 1)[1]
        for name in project["classifiers"]
        if name.startswith("Programming Language :: Python :: 3.")
    }
    assert set(matrix["python"]) == promised
    systems = {*matrix["os"], *(one["os"] for one in matrix["include"])}
    assert {name.split("-")[0] for name in systems} == {"ubuntu", "macos", "windows"}


@pytest.mark.parametrize(
    ("tag", "log", "said"),
    [
        ("v1.2.3", NEW, ""),
        ("v1.2.4", NEW, "the tag is v1.2.4, the version of pyproject.toml is 1.2.3"),
        ("v1.2.3", "## [Unreleased]\n- A thing.\n", "no “## [1.2.3] - YEAR-MONTH-DAY” with a change"),
        ("v1.2.3", "## [1.2.3] - 2026-12-01\n\n## [1.2.2] - 2026-11-01\n- Old.\n", "with a change under it"),
        ("v1.2.3", NEW.replace("2026-12-01", "soon"), "YEAR-MONTH-DAY"),
    ],
)
def test_tag_version_and_changelog_are_of_one_release(tmp_path: Path, tag: str, log: str, said: str) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{log}")
    command = ["sh", ROOT / ".github/check-release.sh", tag]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode == 0) == (not said) and said in done.stderr
