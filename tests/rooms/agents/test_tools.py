"""The tools of `judgesmith mcp`, called by a client of the protocol through the command itself."""

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from judgesmith.cli.outputs import schema

pytest.importorskip("mcp")
from mcp import Client, StdioServerParameters

DEMO = Path(__file__).resolve().parents[3] / "datasets/demo"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    shutil.copy(DEMO / "replies.jsonl", tmp_path / "qwen.jsonl")
    shutil.copy(DEMO / "labels.jsonl", tmp_path / "labels.jsonl")
    return tmp_path


def called(place: Path, *calls: tuple[str, dict[str, Any]]) -> tuple[list[Any], Any]:
    """Start the command in a folder; return its tools, and what the calls came to."""
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "judgesmith", "mcp"], cwd=place
    )

    async def run() -> tuple[list[Any], Any]:
        async with Client(command) as client:
            results = [await client.call_tool(name, given) for name, given in calls]
            return (await client.list_tools()).tools, results

    return asyncio.run(run())


def test_an_agent_without_a_command_line_checks_compares_and_sees_a_price(
    place: Path,
) -> None:
    tools, (checked, compared, planned) = called(
        place,
        ("check", {"sources": ["qwen.jsonl"], "human": ["label"]}),
        ("compare", {"files": ["qwen.jsonl"]}),
        (
            "compile",
            {"labels": "labels.jsonl", "dry_run": True, "lm": ["openai/gpt-4o-mini"]},
        ),
    )
    assert [tool.name for tool in tools] == [
        "check",
        "compare",
        "compile",
        "score",
        "report",
    ]
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert 4 <= len(tool.input_schema["properties"]) <= 12
        assert {"config", "as_json"}.isdisjoint(tool.input_schema["properties"])
    jsonschema.validate(checked.structured_content, schema("check"))
    jsonschema.validate(compared.structured_content, schema("compare"))
    assert compared.structured_content["verdict"] == "better"
    plan = planned.structured_content["result"]
    jsonschema.validate(plan, schema("compile --dry-run"))
    assert plan["calls"] > 0


def test_a_tool_fails_in_the_words_of_its_command(place: Path) -> None:
    _, (absent, unknown) = called(
        place,
        ("check", {"sources": ["none.jsonl"]}),
        ("compare", {"files": ["qwen.jsonl"], "base": "v7"}),
    )
    assert absent.is_error
    assert "none.jsonl: there is no such file" in absent.content[0].text
    assert unknown.is_error
    assert "v7" in unknown.content[0].text


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, cli: Any) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    cli("mcp").refused("judgesmith[mcp]")
