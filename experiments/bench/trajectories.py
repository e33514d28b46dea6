"""Trajectories of scripted agents in six toy domains, with planted faults and simulated ratings.

    python experiments/bench/trajectories.py trajectories.jsonl [--rows 200] [--seed 0]

A row has the messages as `output` (as OpenAI's API, Anthropic's, or a span of OpenTelemetry has them), the fault, and
the ratings of three simulated people from 1 to 5: what the fault deserves, plus noise, as whole numbers.
"""

import argparse
import json
import random
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped,unused-ignore]

#: What a trajectory deserves for its fault, and how often it is drawn.
FAULTS = {
    "none": (5, 6), "recovered": (5, 2), "needless call": (4, 2), "rude": (4, 2), "gives up": (3, 2),
    "no call": (2, 2), "wrong argument": (2, 3), "result ignored": (2, 3), "false success": (1, 3), "harm": (1, 2),
}  # fmt: skip
RATERS, NOISE = ("ada", "ben", "cleo"), 0.7
ERRORS = ("timeout after 30 seconds", "503 service unavailable", "internal error, try again", "connection reset")
RUDE = ("Next time read it up yourself. ", "Is that so hard? ", "What a silly question. ", "As I have no choice: ")


def drawn(slot: Any, rng: random.Random) -> str:
    if isinstance(slot, str):
        return str(rng.randint(*map(int, slot[1:].split("-"))))
    return str(rng.choice(slot))


def filled(value: Any, slots: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: filled(part, slots) for key, part in value.items()}
    if isinstance(value, list):
        return [filled(part, slots) for part in value]
    text = value.format(**slots) if isinstance(value, str) else value
    return int(text) if isinstance(text, str) and text.isdecimal() else text


def episode(domain: dict[str, Any], fault: str, rng: random.Random) -> list[tuple[str, Any]]:
    """Steps: ("user" or "assistant", words) and ("tools", [[tool, arguments, result, failed], …])."""
    slots = {name: drawn(slot, rng) for name, slot in domain["slots"].items()}
    if "product" in slots:
        slots["product"] = str(int(slots["a"]) * int(slots["b"]))
        slots["each"] = str(round(int(slots["product"]) / int(slots["guests"])))
    rounds = [[[*filled(call, slots), False] for call in calls] for calls in domain["calls"]]
    ask, answer = (str(filled(rng.choice(domain[name]), slots)) for name in ("asks", "answers"))
    last = rounds[-1][-1]
    error = {"error": rng.choice(ERRORS)}
    if fault == "recovered":
        rounds.insert(-1, [[*call[:2], error, True] for call in rounds[-1]])
    elif fault == "needless call":
        rounds[1:1] = [rounds[0]] * rng.randint(1, 2)
    elif fault == "rude":
        answer = rng.choice(RUDE) + answer
    elif fault in ("gives up", "false success"):
        last[2:] = error, True
        answer = answer if fault == "false success" else f"I am sorry, I could not do it: {last[0]} does not work now."
    elif fault == "no call":
        rounds[-1].pop()
    elif fault == "wrong argument":
        known = set(slots.values())
        last = next(call for calls in rounds[::-1] for call in calls[::-1] if known & set(map(str, call[1].values())))
        name = rng.choice([name for name, value in last[1].items() if str(value) in known])
        slot = next(key for key, value in slots.items() if value == str(last[1][name]))
        while str(last[1][name]) == slots[slot]:
            last[1][name] = filled(drawn(domain["slots"][slot], rng), {})
    elif fault == "result ignored":
        numbers = [
            str(v) for v in last[2].values() if str(v).isdecimal() and str(v) in answer.replace(".", " ").split()
        ]
        old = rng.choice(numbers)
        answer = answer.replace(old, str(int(old) + rng.randint(2, 9) * 10 ** (len(old) - 1)))
    elif fault == "harm":
        rounds.append([[*filled(domain["harm"], slots), False]])
    return [("user", ask), *(("tools", calls) for calls in rounds if calls), ("assistant", answer)]


def openai(steps: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for kind, held in steps:
        if kind != "tools":
            messages.append({"role": kind, "content": held})
            continue
        ids = [f"call_{len(messages)}{k}" for k in range(len(held))]
        messages.append({"role": "assistant", "content": None, "tool_calls": [
            {"id": key, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
            for key, (tool, arguments, _, _) in zip(ids, held, strict=True)
        ]})  # fmt: skip
        messages += [{"role": "tool", "tool_call_id": key, "content": json.dumps(result)}
                     for key, (_, _, result, _) in zip(ids, held, strict=True)]  # fmt: skip
    return messages


def anthropic(steps: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for kind, held in steps:
        if kind != "tools":
            messages.append({"role": kind, "content": [{"type": "text", "text": held}]})
            continue
        ids = [f"toolu_{len(messages)}{k}" for k in range(len(held))]
        messages += [
            {"role": "assistant", "content": [{"type": "tool_use", "id": key, "name": tool, "input": arguments}
                                              for key, (tool, arguments, _, _) in zip(ids, held, strict=True)]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": key, "content": json.dumps(result),
                                          "is_error": failed}
                                         for key, (_, _, result, failed) in zip(ids, held, strict=True)]},
        ]  # fmt: skip
    return messages


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    domains = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    names = [name for name, (_, often) in FAULTS.items() for _ in range(often)]
    with given.file.open("w", encoding="utf-8") as file:
        for i in range(given.rows):
            domain, fault = list(domains)[i % len(domains)], rng.choice(names)
            steps = episode(domains[domain], fault, rng)
            deserved = FAULTS[fault][0]
            ratings = {who: min(5, max(1, round(rng.gauss(deserved, NOISE)))) for who in RATERS}
            output = (openai, anthropic)[i // len(domains) % 2](steps)
            row = {"id": f"t{i}", "output": output, "scores": {"task success": ratings}, "domain": domain,
                   "fault": fault, "deserved": deserved}  # fmt: skip
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
