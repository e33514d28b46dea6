"""Serve a small chat model as a decision model, by the package logit-classifier, for `decisions.py`.

    PYTHON-3.12 experiments/bench/decision_server.py READER [--port 4750] [--model qwen2.5-0.5b]

logit-classifier is other people's server of typed questions: it writes the prompts and makes probabilities of an
answer's first token. It needs Python 3.12 and a graphics card for models of its own; here a process of READER, the
Python that judgesmith is installed in, gives it log-probabilities by OpenVINO. It serves until it is interrupted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from importlib import import_module
from typing import Any


class Words:
    """What logit-classifier asks of a model: tokens of a chat, and the log-probabilities of the labels after it."""

    sees_images = False

    def __init__(self, reader: str, model: str) -> None:
        self.model_id = model
        command = [reader, __file__, reader, "--model", model, "--logits"]
        self._child: Any = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        base = import_module("logit_classifier.backends.base")
        self._answer = base.BranchLogits
        self._array = import_module("numpy").array
        self.label_ids: list[int] = base.verify_backend(self)

    def _ask(self, **question: Any) -> Any:
        self._child.stdin.write(json.dumps(question) + "\n")
        self._child.stdin.flush()
        return json.loads(self._child.stdout.readline())

    def render(
        self, system: str, user: str, prefill: str, *, open_ended: bool = False
    ) -> str:
        """Return a chat in Qwen's form."""
        begun = f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{user}"
        if open_ended:
            return begun
        return f"{begun}<|im_end|>\n<|im_start|>assistant\n{prefill}"

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        return list(self._ask(text=text))

    def encode_prefix(
        self, text: str, image: Any = None
    ) -> tuple[list[int], dict[str, Any]]:
        """Return the tokens of a beginning; there are no images."""
        return self.encode(text), {}

    def score(
        self,
        prefix_ids: list[int],
        suffix_ids: list[list[int]],
        label_counts: list[int],
        vision: Any = None,
    ) -> list[Any]:
        """Return the labels' log-probabilities after each ending."""
        found = self._ask(
            rows=[prefix_ids + one for one in suffix_ids], words=self.label_ids
        )
        rows = [
            self._array(one[:n]) for one, n in zip(found, label_counts, strict=True)
        ]
        masses = [float(sum(2.718281828459045**z for z in one)) for one in rows]
        return [self._answer(z, mass) for z, mass in zip(rows, masses, strict=True)]


def answering(model: str) -> None:
    """Answer questions on standard input: tokens of a text, or log-probabilities of words after rows of tokens."""
    from judgesmith.programs.models.files import model_path
    from judgesmith.programs.models.threads import thread_count
    from judgesmith.programs.readings.bindings.batches import Row
    from judgesmith.programs.readings.bindings.openvino_reader import OpenVinoReader
    from judgesmith.programs.readings.passages import Piece

    reader = OpenVinoReader(model_path(model), threads=thread_count())
    for line in sys.stdin:
        asked = json.loads(line)
        if "text" in asked:
            found: Any = reader.tokens(Piece(asked["text"], True))
        else:
            rows = [Row(tokens, len(tokens) - 1) for tokens in asked["rows"]]
            every = reader.following(rows)
            found = [one[-1][asked["words"]].astype(float).tolist() for one in every]
        print(json.dumps(found), flush=True)


def main() -> None:
    """Serve, or be the process that reads."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reader")
    parser.add_argument("--port", type=int, default=4750)
    parser.add_argument("--model", default="qwen2.5-0.5b")
    parser.add_argument("--logits", action="store_true", help="read, for the server")
    options = parser.parse_args()
    if options.logits:
        answering(options.model)
        return
    package = import_module("logit_classifier")
    service: Any = import_module("logit_classifier.service")
    words = Words(options.reader, options.model)
    service.Classifier = lambda config: package.Classifier(config, words)
    run = import_module("uvicorn").run
    run(service.app, host="127.0.0.1", port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
