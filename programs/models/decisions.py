"""Decision models: typed questions about a state, answered with probabilities in one pass.

`decision:NAME` sends the form that their servers share (POST …/systemone): a state, and questions of the types `noul`
(is it so?) and `score` (which of 2 to 10 levels, worst first). `zeroshot:NAME` answers the same questions by a
zero-shot classifier of `transformers` in this process (extra `torch`). A request's system message holds the questions
and its user message the state, both as JSON; the reply is the answers as JSON.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import httpx

from judgesmith.errors import ModelError
from judgesmith.extras import from_extra
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.engine import PerLoop
from judgesmith.programs.models.ollama import reaching
from judgesmith.programs.models.refusals import refuse
from judgesmith.programs.models.transport import Request, Unanswered

#: Where a server is, where --api-base does not say it, and the key that it is sent.
ADDRESS = "JUDGESMITH_DECISIONS_BASE"
KEY = "JUDGESMITH_DECISIONS_KEY"
_LONGEST = 2_000_000  # characters of an answer
_SENTENCE = "This text is {}."


def asked_of(request: Request) -> tuple[Mapping[str, Any], Any]:
    """Return the questions and the state of a request. Raises ModelError for one that asks in prose."""
    texts = [str(message["content"]) for message in request.messages]
    try:
        questions, state = map(json.loads, texts)
    except ValueError:
        questions = None
        state = None
    if not isinstance(questions, dict) or not questions:
        raise ModelError(
            "a decision model answers typed questions and reads no prompt; take --method decisions"
        )
    return questions, state


class Served:
    """Asks a server.

    Args:
        model: The model's name there.
        place: The server's address, up to and with `/v1`; "" where it is not known.
        key: Sent as a bearer token, where there is one.
        timeout: Seconds to wait for an answer.
    """

    def __init__(self, model: str, place: str, key: str, timeout: float) -> None:
        self.model = model
        self.place = place
        self._key = key
        self._timeout = timeout
        self._client = PerLoop(self._connected)

    def _connected(self) -> httpx.AsyncClient:
        reach = reaching(self.place, self._timeout)
        if self._key:
            reach["headers"]["Authorization"] = f"Bearer {self._key}"
        return httpx.AsyncClient(**reach)

    async def send(self, request: Request) -> Reply:
        """Ask once. Raises Unanswered, ModelError."""
        questions, state = asked_of(request)
        if not self.place:
            raise ModelError(
                f"decision:{self.model}: where is it served? Give --api-base https://…/v1, or the address in "
                f"{ADDRESS}; a key goes into {KEY}"
            )
        body = {"model": self.model, "state": state, "questions": questions}
        try:
            answer = await self._client().post(f"{self.place}/systemone", json=body)
        except httpx.HTTPError as error:
            raise Unanswered(
                f"the connection failed: {error or type(error).__name__}",
                again=True,
                reached=False,
            ) from None
        if answer.status_code != 200:
            line = " ".join(answer.text[:200].split())
            refuse(self.model, self.place, answer.status_code, line, answer.headers)
        try:
            reply = json.loads(answer.text[:_LONGEST])
            answers = reply["answers"]
            usage = reply.get("usage") or {}
            read = int(usage.get("input_tokens") or 0)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise Unanswered("the answer holds no answers", again=False) from None
        return Reply(json.dumps(answers), prompt_tokens=read, completion_tokens=0)


class ZeroShot:
    """Asks a zero-shot classifier in this process.

    Args:
        model: A name or a folder that `transformers` finds.
    """

    def __init__(self, model: str) -> None:
        self.model = model

    @cached_property
    def classifier(self) -> Any:
        """The pipeline, opened once.

        Raises:
            MissingExtraError: Without torch and transformers.
            ModelError: For a model that cannot be opened.
        """
        package = from_extra("torch", "a zero-shot classifier", "transformers", "torch")
        try:
            return package.pipeline(
                "zero-shot-classification", model=self.model, device=-1
            )
        except (OSError, ValueError) as error:
            line = " ".join(str(error).split())[:200]
            raise ModelError(
                f"zeroshot:{self.model} cannot be opened: {line}"
            ) from None

    async def send(self, request: Request) -> Reply:
        """Answer every question by the classifier.

        Raises:
            MissingExtraError, ModelError: If it cannot be opened.
            Unanswered: For a row that is longer than it reads.
        """
        questions, state = asked_of(request)
        text = "\n\n".join(str(value) for value in state.values())
        answers = await asyncio.to_thread(self._answers, questions, text)
        return Reply(json.dumps(answers), completion_tokens=0)

    def _answers(self, questions: Mapping[str, Any], text: str) -> dict[str, Any]:
        result = {}
        for name, question in questions.items():
            if question["type"] == "noul":
                criteria = [question["instructions"]]
                (share,) = self._shares(text, criteria, several=True)
                result[name] = {"type": "noul", "noul": share}
                continue
            shares = self._shares(text, question["criteria"], several=False)
            by_level = {str(level): share for level, share in enumerate(shares)}
            result[name] = {"type": "score", "probabilities": by_level}
        return result

    def _shares(
        self, text: str, labels: Sequence[str], *, several: bool
    ) -> list[float]:
        """Return the probability of each label. Raises Unanswered."""
        template = "{}" if several else _SENTENCE
        for label in labels:
            self._check_length(text, template.format(label))
        result = self.classifier(
            text, list(labels), multi_label=several, hypothesis_template=template
        )
        of_label = dict(zip(result["labels"], result["scores"], strict=True))
        return [float(of_label[label]) for label in labels]

    def _check_length(self, text: str, hypothesis: str) -> None:
        """Refuse a row that the classifier would cut at its end, where the output stands. Raises Unanswered."""
        tokenizer = self.classifier.tokenizer
        pair = tokenizer(text, hypothesis, truncation=False, verbose=False)
        tokens = len(pair["input_ids"])
        most = tokenizer.model_max_length
        if tokens > most:
            raise Unanswered(
                f"the row has {tokens} tokens with its question, and the classifier reads {most}; "
                "take one that reads longer texts",
                again=False,
            )


def answers_in(reply: Reply) -> Mapping[str, Any]:
    """Return the answers of a reply by their questions' names; none of a reply in prose."""
    try:
        answers = json.loads(reply.text)
    except ValueError:
        return {}
    return answers if isinstance(answers, dict) else {}


def percent_of(answer: Any, levels: int) -> float:
    """Return an answer in percent: the probability that it is so, or the expected level from the worst to the best.

    Returns:
        NaN for what is no answer of its type, such as probabilities that do not add up.
    """
    if not isinstance(answer, Mapping):
        return math.nan
    if answer.get("type") == "noul":
        return 100 * _share(answer.get("noul"))
    probabilities = answer.get("probabilities")
    if not isinstance(probabilities, Mapping):
        return 100 * _share(_number(answer.get("score")) / (levels - 1))
    shares = [_share(probabilities.get(str(level), 0.0)) for level in range(levels)]
    total = math.fsum(shares)
    if not 0.9 <= total <= 1.1:  # servers round
        return math.nan
    expected = math.fsum(level * share for level, share in enumerate(shares))
    return 100 * expected / total / (levels - 1)


def _number(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number else math.nan


def _share(value: Any) -> float:
    number = _number(value)
    return number if 0 <= number <= 1 else math.nan
