"""A saved judge in promptfoo, through `judgesmith serve`: an assertion, and a provider. Promptfoo runs this file with
whatever Python it finds, so it needs no other; `python -m judgesmith.adapters.promptfoo` prints its path.

```yaml
# promptfooconfig.yaml, with `judgesmith serve judge.json` running
prompts: ["Summarize: {{source}}"]
providers: [openai:gpt-4o-mini]
defaultTest:
  assert:
    - type: python
      value: file:///…/promptfoo.py          # get_assert: the output is judged, with the variables
      config: {threshold: 3.5, url: http://127.0.0.1:8000}   # source, context and reference
tests: [{vars: {source: "…"}}]
```

As a provider (`providers: [{id: "file:///…/promptfoo.py", config: {url: …}}]`) the prompt is what is judged, and the
score is the output; `javascript: Number(output) >= 3.5` asserts something of it.

config: `url` (else JUDGESMITH_URL, else http://127.0.0.1:8000), `judge` (a name of the server's), `threshold` (the
lowest score that passes, on the judge's scale; may be left out where the judge knows pass and fail), `source`,
`context` and `reference` (names of other variables). The server's key is read from JUDGESMITH_API_KEY. A row without a
score is an error: the provider returns it as such; the assertion raises, and promptfoo shows the reason as the error.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

TRIES, LONGEST_WAIT, TIMEOUT = 5, 60.0, 300.0
PARTS = ("source", "context", "reference")


class NoScore(Exception):
    """Why a row has no score."""


def get_assert(output: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    """Promptfoo's assertion: pass, score (on the judge's scale) and reason. Raises NoScore."""
    config = context.get("config") or {}
    verdict = judged(output, context.get("vars") or {}, config)
    threshold = config.get("threshold")
    if threshold is None and verdict.get("passed") is None:
        raise ValueError("say which scores pass: config: {threshold: …}, on the judge's scale")
    passed = verdict["passed"] if threshold is None else verdict["score"] >= float(threshold)
    return {"pass": bool(passed), "score": verdict["score"], "reason": verdict.get("explanation") or "no explanation"}


def call_api(prompt: str, options: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    """Promptfoo's provider: the score of the prompt as output, or an error."""
    try:
        verdict = judged(prompt, context.get("vars") or {}, options.get("config") or {})
    except (NoScore, OSError, ValueError) as error:
        return {"error": str(error)}
    return {"output": str(verdict["score"]), "metadata": {"verdict": verdict}}


def judged(output: Any, variables: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict of the server. Raises NoScore for a row without a score, and where the server does not answer."""
    row = {part: _text(variables.get(config.get(part) or part)) for part in PARTS}
    row = {part: text for part, text in row.items() if text} | {"output": _text(output)}
    if config.get("judge"):
        row["judge"] = str(config["judge"])
    base = str(config.get("url") or os.environ.get("JUDGESMITH_URL") or "http://127.0.0.1:8000").rstrip("/")
    verdict = _post(base, json.dumps(row).encode())
    if verdict.get("score") is None:
        raise NoScore(verdict.get("failure") or "the judge gave no score")
    return verdict


def _post(base: str, body: bytes) -> dict[str, Any]:
    if not base.startswith(("http://", "https://")):
        raise ValueError(f"url {base!r} is not an http(s) address")
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("JUDGESMITH_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(f"{base}/v1/score", body, headers)  # noqa: S310
    for again in range(TRIES):
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
                verdict: dict[str, Any] = json.load(answer)
                return verdict
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503) or again == TRIES - 1:
                text = error.read(300).decode(errors="replace")
                raise NoScore(f"judgesmith serve: HTTP {error.code}: {text}") from None
            asked = error.headers.get("Retry-After") or ""
            time.sleep(min(float(asked) if asked.isdigit() else 1.0, LONGEST_WAIT))
        except urllib.error.URLError as error:
            raise NoScore(f"{base} does not answer: {error.reason}; start `judgesmith serve`") from None
    raise AssertionError("the last try returns or raises")


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)


if __name__ == "__main__":
    print(__file__)
