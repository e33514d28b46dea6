"""What an option of `score` does follows from its declaration.

That is which runs it keeps apart, and which ways of running follow it.
"""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from json_lines import lines, write
from parrot import parrot

from judgesmith.cli.commands import flag
from judgesmith.errors import OptionError
from judgesmith.parts import Effect
from judgesmith.programs.judge import Judge
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.running.settings import BATCH, RAY, check_way, compared, spelled
from judgesmith.scoring.command import Score
from judgesmith.scoring.scoring import Asked, Run, score_file
from judgesmith.signatures.values import Verdict

ENGINES = Path(__file__).parents[2] / "src/judgesmith/rooms/engines"


class Length(DirectScorer):
    """A judge without a model."""

    async def prepare(self, lm: Any) -> None: ...

    async def judge(self, item: Any, lm: Any) -> Verdict:
        return Verdict(percent=float(len(item.output)))


class Tagged(Score):
    """A `score` with options that were added in one place."""

    tag: str | None = flag(None, "A tag.", effect=Effect("value", (BATCH,)))
    size: int = flag(1, "A size, of which nothing is declared.")
    note: str = flag("", "A note.", effect=Effect("nothing", (RAY,)))


def tagged(**chosen: Any) -> Tagged:
    return Tagged(rows="rows.jsonl", judge=Path("judge.json"), **chosen)


def test_every_option_of_score_declares_both() -> None:
    for name, field in Score.model_fields.items():
        effect = Effect.of(field)
        assert effect.resumed is not None, name
        assert effect.ways is not None, name


@pytest.mark.parametrize(
    ("way", "chosen", "refused"),
    [
        (RAY, {"tag": "a"}, "--tag has no effect with --on ray; leave it out"),
        (RAY, {"size": 2}, "--size has no effect with --on ray"),
        (RAY, {"raw": True}, "--raw has no effect with --on ray"),
        (RAY, {"note": "a"}, ""),
        (BATCH, {"tag": "a"}, ""),
        (BATCH, {"size": 2}, "--size has no effect with --batch"),
        (BATCH, {"note": "a"}, "--note has no effect with --batch"),
        (BATCH, {"rpm": 5}, "--rpm is for requests that are sent one by one"),
        (BATCH, {"max_calls": 5}, "--max-calls cannot stop the requests of --batch"),
        (BATCH, {"explain": True}, "--explain and --batch cannot be combined"),
        ("--on spark", {"limit": 5}, "--limit has no effect with --on spark"),
        ("--on spark", {"lm": "openai/m", "as_json": True}, ""),
    ],
)
def test_a_way_refuses_what_is_not_declared_for_it(
    way: str, chosen: dict[str, Any], refused: str
) -> None:
    command = tagged(**chosen)
    if not refused:
        check_way(command, way)
        return
    with pytest.raises(OptionError, match=refused):
        check_way(command, way)


@pytest.mark.parametrize("way", [{"on": "ray"}, {"batch": True}])
def test_the_command_refuses_before_it_reads_anything(way: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="--size has no effect with --"):
        tagged(size=2, **way).run()


def scored(folder: Path, **chosen: Any) -> int:
    """How many rows a run with these options found there."""
    rows = folder / "rows.jsonl"
    write(rows, [{"id": str(n), "output": "a" * n} for n in range(1, 4)])
    judge = Judge(Length("fluency"), lm=parrot())
    judge.explains = bool(chosen.get("explain"))
    options = compared(tagged(**chosen), "value")
    return score_file(Run(judge, folder / "out.jsonl", options=options), rows).resumed


@pytest.mark.parametrize(
    ("first", "then", "why"),
    [
        ({"tag": "a"}, {"tag": "a"}, ""),
        ({"note": "a", "raw": True}, {"note": "b"}, ""),
        ({"tag": "a"}, {"tag": "b"}, "with another --tag"),
        ({"tag": "a"}, {}, "with --tag"),
        ({}, {"tag": "a"}, "without --tag"),
        ({"size": 2}, {"size": 3}, "with another --size"),
        ({}, {"size": 3}, "without --size"),
        ({"explain": True}, {}, "with --explain"),
    ],
)
def test_a_run_resumes_with_the_same_values_alone(
    first: dict[str, Any], then: dict[str, Any], why: str, tmp_path: Path
) -> None:
    assert scored(tmp_path, **first) == 0
    if not why:
        assert scored(tmp_path, **then) == 3
        return
    with pytest.raises(OptionError, match=f"was scored {why}; give another -o"):
        scored(tmp_path, **then)


@pytest.mark.parametrize("explain", [False, True])
def test_what_an_earlier_version_began_is_resumed(
    explain: bool, tmp_path: Path
) -> None:
    """Its marks were SERVER-TEXTS and, of explained rows, SERVER-TEXTS-explained."""
    scored(tmp_path, explain=explain)
    out = tmp_path / "out.jsonl"
    earlier = []
    for row in lines(out):
        mark = Asked.of(row["asked"])
        plain = f"{mark.server}-{mark.texts}"
        earlier.append(row | {"asked": f"{plain}-explained" if explain else plain})
    out.write_text("".join(json.dumps(row) + "\n" for row in earlier[:2]))
    assert scored(tmp_path, explain=explain) == 2
    with pytest.raises(OptionError, match="was scored with"):
        scored(tmp_path, explain=not explain)


def test_an_option_is_spelled_as_on_the_command_line() -> None:
    assert spelled(Score, "as_json") == "--json"
    assert spelled(Score, "any_server") == "--any-server"


def test_what_is_declared_for_ray_is_read_by_its_code() -> None:
    """Ray's run has code of its own: an option that is only declared would be lost there without a word."""
    read = set()
    for path in ENGINES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "command":
                read.add(node.attr)
    effects = {name: Effect.of(field) for name, field in Score.model_fields.items()}
    own = effects.keys() & Score.__annotations__.keys()
    declared = {name for name in own if RAY in (effects[name].ways or ())}
    assert {"explain", "workers"} <= declared
    assert declared - {"on"} <= read  # `on` has led there
