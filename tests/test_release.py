"""The workflow that releases: what it may do, and its check of tag, version and changelog."""

import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.text

ROOT = Path(__file__).resolve().parents[1]
NEW = "## [1.2.3] - 2026-12-01\n\n### Added\n- A thing.\n"


def test_only_what_publishes_may_ask_for_an_identity_and_only_after_the_checks() -> (
    None
):
    workflow = yaml.safe_load(
        (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    )
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML reads "on" as true
    assert workflow["jobs"]["test"]["uses"] == "./.github/workflows/test.yml"
    assert workflow["jobs"]["build"]["needs"] == "test"
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert workflow["permissions"] == {"contents": "read"}
    assert "permissions" not in build
    assert publish["permissions"] == {"id-token": "write"}
    assert "secrets." not in str(workflow)
    assert publish["needs"] == "package"
    assert publish["steps"][-1]["uses"].startswith("pypa/gh-action-pypi-publish@")
    package = workflow["jobs"]["package"]
    assert package["needs"] == "build"
    assert "permissions" not in package
    tried = [
        step["run"].split("dist/")[1]
        for step in package["steps"]
        if "check-package.sh" in step.get("run", "")
    ]
    assert tried == ["*.whl python", "*.tar.gz python"]
    runs = "\n".join(step.get("run", "") for step in build["steps"])
    assert (
        0
        <= runs.index('check-release.sh "$TAG"')
        < runs.index("-m build")
        < runs.index("twine check --strict")
    )


@pytest.mark.parametrize(("name", "job"), [("test", "test"), ("release", "package")])
def test_every_system_and_python_that_is_promised_is_tried_together(
    name: str, job: str
) -> None:
    workflow = yaml.safe_load(
        (ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8")
    )
    matrix = workflow["jobs"][job]["strategy"]["matrix"]
    assert set(matrix) == {"os", "python"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    promised = {
        name.rsplit(" ", 1)[1]
        for name in project["classifiers"]
        if name.startswith("Programming Language :: Python :: 3.")
    }
    assert set(matrix["python"]) == promised
    assert {name.split("-")[0] for name in matrix["os"]} == {
        "ubuntu",
        "macos",
        "windows",
    }


def test_pull_requests_are_tested_without_rights() -> None:
    workflow = yaml.safe_load(
        (ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8")
    )
    assert "pull_request" in workflow[True]
    assert workflow["permissions"] == {"contents": "read"}


def test_the_policy_names_the_version_that_is_supported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    series = ".".join(project["version"].split(".")[:2])
    policy = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert f"| {series}.x | yes |" in policy


@pytest.mark.parametrize(
    ("tag", "log", "said"),
    [
        ("v1.2.3", NEW, ""),
        ("v1.2.4", NEW, "the tag is v1.2.4, the version of pyproject.toml is 1.2.3"),
        (
            "v1.2.3",
            "## [Unreleased]\n- A thing.\n",
            "no “## [1.2.3] - YEAR-MONTH-DAY” with a change",
        ),
        (
            "v1.2.3",
            "## [1.2.3] - 2026-12-01\n\n## [1.2.2] - 2026-11-01\n- Old.\n",
            "with a change under it",
        ),
        ("v1.2.3", NEW.replace("2026-12-01", "soon"), "YEAR-MONTH-DAY"),
    ],
)
def test_tag_version_and_changelog_are_of_one_release(
    tmp_path: Path, tag: str, log: str, said: str
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{log}")
    command = ["sh", ROOT / ".github/check-release.sh", tag]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode == 0) == (not said)
    assert said in done.stderr
