"""The files of deploy/: what they call is there, and nothing runs as root. Their schemas are checked by hand."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from judgesmith.cli.main import command_model
from judgesmith.rooms.serving.metrics import Metrics

pytestmark = pytest.mark.text

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


def pods() -> dict[str, dict[str, Any]]:
    made = [
        one
        for name in ("kubernetes/serve.yaml", "kubernetes/score.yaml")
        for one in documents(name)
    ]
    return {
        one["kind"]: one["spec"]["template"]["spec"]
        for one in made
        if "template" in one["spec"]
    }


COMMANDS = {
    "compose": documents("compose.yaml")[0]["services"]["judge"]["command"],
    **{kind: pod["containers"][0]["args"] for kind, pod in pods().items()},
}


@pytest.mark.parametrize("where", COMMANDS)
def test_commands_have_the_options_that_they_are_given(where: str) -> None:
    command, *rest = COMMANDS[where]
    model = command_model([command])
    assert model is not None
    fields = model.model_fields
    names = {f"--{name.replace('_', '-')}" for name in fields} | {"--json"}
    given = [word.partition("=")[0] for word in rest if word.startswith("--")]
    assert given
    assert set(given) <= names


@pytest.mark.parametrize("kind", pods())
def test_no_pod_runs_as_root_or_writes_its_own_files(kind: str) -> None:
    pod = pods()[kind]
    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in pod["containers"]:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {
            volume["name"] for volume in pod["volumes"]
        }


def test_the_image_has_a_user_of_its_own_and_looks_after_itself() -> None:
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^USER [1-9]\d+$", lines, re.M)
    assert "HEALTHCHECK" in lines
    assert "/healthz" in lines


def test_the_dashboard_shows_what_servers_count() -> None:
    board = json.loads((DEPLOY / "grafana/judgesmith.json").read_text(encoding="utf-8"))
    shown = re.findall(
        r"judgesmith_\w+", json.dumps([panel["targets"] for panel in board["panels"]])
    )
    assert len(set(shown)) > 8
    assert set(shown) <= counted()


def test_the_alerts_are_of_what_servers_count_and_say_what_happened() -> None:
    (group,) = documents("rules.yml")[0]["groups"]
    assert len(group["rules"]) >= 5
    for rule in group["rules"]:
        named = set(re.findall(r"judgesmith_\w+", rule["expr"]))
        assert named
        assert named <= counted()
        assert rule["annotations"]["summary"].endswith(".")
    assert "rules.yml" in documents("prometheus.yml")[0]["rule_files"][0]


def names_of(family: Any) -> set[str]:
    """The names under which Prometheus keeps a metric."""
    endings = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(
        family.type, [""]
    )
    return {f"{family.name}{ending}" for ending in endings}


def counted() -> set[str]:
    return set().union(*map(names_of, Metrics().registry.collect()))


def test_a_stop_gives_servers_the_time_that_they_ask_for() -> None:
    model = command_model(["serve"])
    assert model is not None
    grace = model.model_fields["grace"].default
    assert (
        int(
            documents("compose.yaml")[0]["services"]["judge"][
                "stop_grace_period"
            ].rstrip("s")
        )
        > grace
    )
    assert pods()["Deployment"]["terminationGracePeriodSeconds"] > grace
