"""`judgesmith score --on ray --engine vllm`: the model runs inside Ray (`ray.data.llm`) and takes prompts by the batch.

A judge asks its model row by row, and some ask twice. So a part is judged in rounds: the judge runs with a transport
that answers what it knows and notes what it does not; all that was noted goes through vLLM as one data set; until a
round has nothing to ask. What is written is made by the same engine as ever, from answers that are all known.
"""

from __future__ import annotations

import importlib.util
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any

import orjson

from ..datasets.records import Row
from ..errors import MissingExtraError, ModelError, OptionError
from ..programs import artifact
from ..programs.judge import Judge
from ..programs.models import engine
from ..programs.models.lm import Connection, LanguageModel
from ..programs.models.transport import Reply, Request, Unanswered, read_reply
from ..scoring.scoring import item_of

#: Providers whose names end in a model that vLLM can load.
PROVIDERS = ("vllm", "hosted_vllm")
#: Rounds of a part at most: the probe, a judge's steps, and each one's second try.
MOST_ROUNDS = 20
#: Rows that the judge has under way at once, in a round.
AT_ONCE = 256
#: Prompts that an engine takes at once.
BATCH = 64
COMPLETION, FAULT, PLACE = "completion", "__inference_error__", "place"

#: Takes prompts as rows (`messages`, `sampling_params`, `place`), gives rows back in any order: `place`, and
#: `completion` (JSON, as OpenAI's) or an error.
Process = Callable[[list[dict[str, Any]]], Iterable[Mapping[str, Any]]]


class Rounds:
    """A transport that knows some answers, and notes what else it is asked. It gives no JSON schema."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._known: dict[bytes, Reply | Unanswered] = {}
        self._wanted: dict[bytes, Request] = {}

    async def send(self, request: Request) -> Reply:
        if request.schema is not None:
            raise Unanswered("vLLM inside Ray takes no JSON schema", again=False)
        key = _key(request)
        found = self._known.get(key)
        if found is None:
            self._wanted[key] = request
            raise Unanswered("it was not asked yet", again=False)
        if isinstance(found, Unanswered):
            raise Unanswered(str(found), again=False)
        return found

    async def close(self) -> None:
        return None

    def answer(self, judge: Judge, rows: Sequence[Row]) -> None:
        """Come to know all that the judge asks for these rows, and no more than that."""
        self._known.clear()
        for _ in range(MOST_ROUNDS):
            self._wanted.clear()
            with suppress(ModelError):  # the probe's questions are not answered yet; if they cannot be, it comes again
                engine.run(judge.prepare(judge.lm))
                deque(judge.score_many(map(item_of, rows), concurrency=AT_ONCE), maxlen=0)
            if not self._wanted:
                return
            keys = list(self._wanted)
            for told in self._process([_prompt(n, self._wanted[key]) for n, key in enumerate(keys)]):
                self._known[keys[told[PLACE]]] = _answer(told)
            for key in keys:
                self._known.setdefault(key, Unanswered("the engine gave no answer", again=False))


def _key(request: Request) -> bytes:
    asked = [list(request.messages), request.temperature, request.max_tokens, request.top_logprobs, request.sample]
    try:
        return sha256(orjson.dumps(asked)).digest()
    except orjson.JSONEncodeError as error:  # a lone surrogate, as broken JSON lines have
        raise Unanswered(f"a text of this row cannot be sent ({error})", again=False) from None


def _prompt(place: int, request: Request) -> dict[str, Any]:
    sampling: dict[str, Any] = {"temperature": request.temperature, "max_tokens": request.max_tokens}
    if request.top_logprobs:
        sampling["logprobs"] = request.top_logprobs
    if request.sample:
        sampling["seed"] = request.sample
    return {PLACE: place, "messages": [dict(message) for message in request.messages], "sampling_params": sampling}


def _answer(told: Mapping[str, Any]) -> Reply | Unanswered:
    if fault := told.get(FAULT):
        return Unanswered(f"vLLM: {' '.join(str(fault).split())[:300]}", again=False)
    try:
        return read_reply(orjson.loads(told[COMPLETION]))
    except Unanswered as problem:
        return Unanswered(str(problem), again=False)


def completion(row: Mapping[str, Any]) -> dict[str, Any]:
    """What vLLM gave for a prompt, in OpenAI's form. Runs in Ray's processes."""
    choice: dict[str, Any] = {"message": {"content": row["generated_text"]}}
    if row.get("logprobs") is not None:
        content = []
        for token, others in zip(row["generated_tokens"], row["logprobs"], strict=False):
            by_name = {str(name): found for name, found in others.items() if found is not None}
            listed = [{"token": one["decoded_token"], "logprob": one["logprob"]} for one in by_name.values()]
            chosen = by_name.get(str(token))
            if chosen is not None:
                content.append({"token": chosen["decoded_token"], "top_logprobs": listed})
        choice["logprobs"] = {"content": content}
    usage = {"prompt_tokens": row["num_input_tokens"], "completion_tokens": row["num_generated_tokens"]}
    return {PLACE: row[PLACE], COMPLETION: orjson.dumps({"choices": [choice], "usage": usage}).decode()}


def through_ray(source: str, workers: int) -> Process:
    """vLLM with a model (a name of Hugging Face's or a path on each machine), as often as there are workers. Raises
    MissingExtraError without Ray; where vLLM is missing on a worker, Ray's own error."""
    try:
        import ray
        from ray.data.llm import build_processor, vLLMEngineProcessorConfig
    except ImportError:
        raise MissingExtraError("--engine vllm needs Ray: pip install 'judgesmith[ray]'") from None
    config = vLLMEngineProcessorConfig(
        model_source=source, concurrency=workers, batch_size=BATCH, should_continue_on_error=True,
        engine_kwargs={"enable_prefix_caching": True, "max_logprobs": 20},
    )  # fmt: skip
    processor = build_processor(config, postprocess=completion)

    def process(prompts: list[dict[str, Any]]) -> Iterable[Mapping[str, Any]]:
        found: Iterable[Mapping[str, Any]] = processor(ray.data.from_items(prompts)).iter_rows()
        return found

    return process


def engine_judge(judge: Judge, lm: str, read: artifact.Artifact, where: Connection, rounds: Rounds) -> None:
    """Have a judge ask the engine."""
    own = replace(where, cache=False, concurrency=AT_ONCE)
    judge.set_lm(
        LanguageModel(lm, rounds, identity="vLLM inside Ray", sampling=artifact.sampling_of(read), connection=own)
    )


def model_source(lm: str | None) -> str:
    """What vLLM loads for a model's name. Raises OptionError for a name that says nothing of that."""
    provider, _, source = (lm or "").partition("/")
    if provider not in PROVIDERS or not source:
        raise OptionError(f"--engine vllm needs --lm vllm/MODEL, for example vllm/Qwen/Qwen2.5-7B-Instruct; got {lm}")
    return source


def check_vllm(address: str | None) -> None:
    """Raises MissingExtraError where vLLM has to run on this machine and is not there."""
    if address is None and importlib.util.find_spec("vllm") is None:
        raise MissingExtraError("--engine vllm needs vLLM on each machine with a GPU: pip install vllm")
