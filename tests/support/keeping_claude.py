"""A server of Anthropic's form that keeps beginnings of prompts as Claude does, and counts them as Claude does."""

import json
import time
from dataclasses import dataclass, field
from typing import Any

from misbehaving_server import Say

#: Tokens from which on a beginning is kept, and characters to a token.
LEAST, DENSE = 1024, 4


@dataclass
class KeepingClaude:
    """Answers after `wait` seconds; a beginning is kept from its first answer on.

    `read`, `written`, `plain`: tokens of all prompts by how they were paid for.
    """

    wait: float = 0.05
    least: int = LEAST
    answer: str = "Explanation: Fine.\nScore: 4"
    kept: dict[str, float] = field(default_factory=dict)
    read: int = 0
    written: int = 0
    plain: int = 0

    def __call__(self, number: int, body: dict[str, Any]) -> Say:
        system = body.get("system") or []
        parts = [{"text": system}] if isinstance(system, str) else list(system)
        for message in body["messages"]:
            content = message["content"]
            parts += [{"text": content}] if isinstance(content, str) else content
        marks = [n for n, part in enumerate(parts) if "cache_control" in part]
        texts = [str(part["text"]) for part in parts]
        beginning = "\0".join(texts[: marks[-1] + 1]) if marks else ""
        tokens = len(beginning) // DENSE
        read = written = 0
        if tokens >= self.least:
            now = time.monotonic()
            if self.kept.setdefault(beginning, now + self.wait) <= now:
                read = tokens
            else:
                written = tokens
        plain = sum(map(len, texts)) // DENSE - read - written
        self.read, self.written = self.read + read, self.written + written
        self.plain += plain
        usage = {
            "input_tokens": plain,
            "output_tokens": 9,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
        }
        message = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [{"type": "text", "text": self.answer}],
            "stop_reason": "end_turn",
            "usage": usage,
        }
        return Say(body=json.dumps(message).encode(), wait=self.wait)
