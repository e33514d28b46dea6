"""`judgesmith label` in a process of its own, and a page's requests to it."""

import re
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from json_lines import write


class Labelling:
    """A running command. address: what it printed; http: a client that does what the page does."""

    def __init__(self, process: Any) -> None:
        self.process, self.lines = process, []
        found = None
        while found is None:
            line = process.stderr.readline()
            assert line, "".join(self.lines)
            self.lines.append(line)
            found = re.search(r"at ((http://\S+)/#(\S+))", line)
        threading.Thread(
            target=lambda: self.lines.extend(process.stderr), daemon=True
        ).start()
        self.address, self.base, self.token = found.groups()
        headers = {"X-Token": self.token, "Origin": self.base}
        self.http = httpx.Client(base_url=self.base, headers=headers, timeout=60)

    def next(self, rater: str) -> Any:
        return self.http.get("/api/next", params={"rater": rater}).json()

    def send(self, rater: str, action: str, **more: Any) -> httpx.Response:
        return self.http.post(
            "/api/events",
            json={"action": action, "rater": rater, "request": uuid4().hex} | more,
        )

    def answer(self, rater: str, answer: Any, unit: Any = None) -> httpx.Response:
        """The next row's answer."""
        unit = unit or self.next(rater)["unit"]
        where = {"unit": unit["key"], "turn": unit["turn"], "after": unit["after"]}
        return self.send(rater, "answer", answer=answer, **where)


def rows_to_label(path: Path, n: int = 30, **more: Any) -> Path:
    """N rows of n/2 documents, of which half are wrong, and one is hostile."""
    made = []
    for i in range(n):
        town = f"Town {i // 2}"
        source = f"{town} rebuilt its bridge in {1900 + i}. The works cost {7 * i + 40} crowns."
        made.append(
            {
                "id": f"r{i}",
                "source": source,
                "output": f"{town} paid {7 * i + 40 + i % 2} crowns.",
                "doc_id": f"d{i // 2}",
                "system": "ab"[i % 2],
            }
            | more
        )
    if n > 3:
        made[3]["output"] = HOSTILE
    return write(path, made)


#: Markup, a turned line, a lone surrogate, emoji of several code points, another direction, and length.
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> \u202eabc\ud800 👩‍👩‍👧‍👦 مرحبا بالعالم {{7*7}} &amp; "
    + "long " * 4000
)
