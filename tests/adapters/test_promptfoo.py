"""The file that promptfoo runs, against a real `judgesmith serve`, and promptfoo itself where it is installed."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judgesmith.adapters import promptfoo

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

KEY = "a-key-of-sixteen-characters"


@pytest.fixture
def url(saved: dict[str, Any], spawn: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of a server that asks for a key."""
    monkeypatch.setenv("JUDGESMITH_API_KEY", KEY)
    process = spawn("serve", f"truth={saved['judge']}", "--port", 0, "--api-base", saved["connection"].api_base)
    line = process.stderr.readline()
    found = re.search(r"at (http://\S+)", line)
    assert found, line + process.stderr.read()
    yield found[1]


def test_an_assertion_and_a_provider(url: str, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"url": url, "threshold": 50, "source": "article"}
    context = {"vars": {"article": "an article", "reference": "a reference", "other": 3}, "config": config}
    assert promptfoo.get_assert("good 80", context) == {"pass": True, "score": 80.0, "reason": "It says 80."}
    assert promptfoo.get_assert("good 40", context)["pass"] is False
    prompt = server.judged[0].text
    assert "an article" in prompt
    assert "a reference" in prompt
    with pytest.raises(promptfoo.NoScore):
        promptfoo.get_assert("bad", context)
    with pytest.raises(ValueError, match="threshold"):
        promptfoo.get_assert("good 80", context | {"config": {"url": url}})

    given = promptfoo.call_api("good 70", {"config": {"url": url, "judge": "truth"}}, {"vars": {}})
    assert (given["output"], given["metadata"]["verdict"]["explanation"]) == ("70.0", "It says 70.")
    assert set(promptfoo.call_api("bad", {"config": {"url": url}}, {})) == {"error"}
    assert "HTTP 404" in promptfoo.call_api("good 70", {"config": {"url": url, "judge": "another"}}, {})["error"]
    assert "not an http" in promptfoo.call_api("good 70", {"config": {"url": "file:///etc/hosts"}}, {})["error"]
    monkeypatch.delenv("JUDGESMITH_API_KEY")
    assert "HTTP 401" in promptfoo.call_api("good 70", {"config": {"url": url}}, {})["error"]


def test_where_no_server_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGESMITH_URL", "http://127.0.0.1:9")
    assert "start `judgesmith serve`" in promptfoo.call_api("good 70", {}, {})["error"]


def test_it_needs_nothing_but_python_and_tells_its_place() -> None:
    command = [sys.executable, "-I", "-S", str(promptfoo.__file__)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == promptfoo.__file__, done.stderr


@pytest.mark.skipif(shutil.which("promptfoo") is None, reason="promptfoo is not installed")
def test_in_promptfoo_itself(url: str, tmp_path: Path) -> None:
    this = f"file://{promptfoo.__file__}"
    asserted = [{"type": "python", "value": this, "config": {"url": url, "threshold": 50}}]

    def evaluated(provider: Any, check: Any) -> list[dict[str, Any]]:
        """Results for good 80, good 40 and bad; `echo` says what it is asked."""
        tests = [{"vars": {"text": text}, "assert": check} for text in ("good 80", "good 40", "bad")]
        config = {"prompts": ["{{text}}"], "providers": [provider], "tests": tests}
        (tmp_path / "config.json").write_text(json.dumps(config))
        own = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_PYTHON": sys.executable}
        subprocess.run(
            [str(shutil.which("promptfoo")), "eval", "-c", "config.json", "-o", "out.json", "--no-cache"],
            cwd=tmp_path, timeout=240, capture_output=True,
            env=os.environ | own | {"PROMPTFOO_CONFIG_DIR": str(tmp_path)},
        )  # fmt: skip
        results = json.loads((tmp_path / "out.json").read_text())["results"]["results"]
        return sorted(results, key=lambda r: int(r["testIdx"]))

    good, poor, bad = evaluated("echo", asserted)
    assert (good["success"], good["score"], good["gradingResult"]["reason"]) == (True, 80, "All assertions passed")
    assert (poor["success"], poor["score"]) == (False, 40)
    assert not bad["success"]
    assert "NoScore" in bad["error"]
    provider = {"id": this, "config": {"url": url}}
    good, poor, bad = evaluated(provider, [{"type": "javascript", "value": "Number(output) >= 50"}])
    assert (good["success"], good["response"]["output"], poor["success"]) == (True, "80.0", False)
    assert "no score in the answer" in bad["error"]
    assert "output" not in bad["response"]
    assert bad["failureReason"] == 2  # promptfoo's number for an error, not a failed assertion
