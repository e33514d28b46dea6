"""A language model that follows a script: strict, silent about nothing, never on the network."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from judgesmith.programs.answers.reply import Reply, TokenChoice
from judgesmith.programs.models.lm import Connection, LanguageModel, Sampling
from judgesmith.programs.models.transport import Message, Request, Unanswered

#: What a step answers: a text, a whole reply, or the failure of the call.
Answered = str | Reply | Unanswered
Step = tuple[Callable[[Sequence[Message]], bool], Answered]
Script = Sequence[Step] | Callable[[Request], Answered | None]
PROBE = "2 + 2 ="


class ScriptedTransport:
    """Transport that answers requests from a script.

    A script is a list of (predicate on the messages, answer) that is used up in its order, or a function from the
    request to an answer (None: not expected). Anything else raises AssertionError, which no judge catches. The probe of
    a model's abilities is answered by the abilities given.
    """

    def __init__(
        self,
        script: Script,
        *,
        logprobs: bool = False,
        json_schema: bool = False,
        system_prompt: bool = True,
    ) -> None:
        self.steps = None if callable(script) else list(script)
        self.function = script if callable(script) else None
        self.able = (logprobs, json_schema, system_prompt)
        #: Requests that were no probes, in the order in which they came.
        self.requests: list[Request] = []
        self.probes = 0

    async def send(self, request: Request) -> Reply:
        """Return the scripted answer.

        Raises:
            AssertionError: If the script does not expect the request.
        """
        logprobs, json_schema, system_prompt = self.able
        if not system_prompt and request.messages[0]["role"] == "system":
            raise Unanswered("HTTP 400: no system role", again=False)
        if PROBE in request.messages[-1]["content"]:
            self.probes += 1
            if request.schema:
                return Reply('{"digit": 4}' if json_schema else "4")
            tokens = (TokenChoice("4", (("4", -0.1), ("5", -3.0))),)
            return Reply("4", tokens if logprobs and request.top_logprobs else None)
        self.requests.append(request)
        answer = self._next(request)
        if isinstance(answer, Unanswered):
            raise answer
        if not isinstance(answer, str):
            return answer
        # A count that is far too small means that the server cut the prompt.
        size = sum(len(message["content"]) for message in request.messages)
        counted = 10 if size < 5000 else size // 4
        return Reply(answer, prompt_tokens=counted, completion_tokens=5)

    def _next(self, request: Request) -> Answered:
        text = "\n".join(f"[{m['role']}] {m['content']}" for m in request.messages)
        if self.function is not None:
            answer = self.function(request)
            assert answer is not None, f"an unexpected prompt:\n{text}"
            return answer
        assert self.steps, f"a prompt after the script's end:\n{text}"
        expected, answer = self.steps.pop(0)
        assert expected(request.messages), (
            f"another prompt than the script's next:\n{text}"
        )
        return answer


class MakeScripted:
    """Makes (model, transport) from a script. `made`: the transports."""

    def __init__(self) -> None:
        self.transports: list[ScriptedTransport] = []

    def __call__(
        self,
        script: Script,
        *,
        grammar: bool = False,
        name: str = "test/model",
        sampling: Sampling | None = None,
        attempts: int = 1,
        concurrency: int | None = None,
        **able: bool,
    ) -> tuple[LanguageModel, ScriptedTransport]:
        """able: what the transport is able to."""
        transport = ScriptedTransport(script, **able)
        self.transports.append(transport)
        connection = Connection(cache=False, attempts=attempts, concurrency=concurrency)
        own: Any = {
            "identity": "test",
            "sampling": sampling,
            "connection": connection,
            "knows_grammar": grammar,
        }
        return LanguageModel(name, transport, **own), transport


@contextmanager
def scripted_models() -> Iterator[MakeScripted]:
    """Provide a function that makes scripted models.

    Raises:
        AssertionError: At the end, if a script was not used up.
    """
    make = MakeScripted()
    yield make
    left = [len(t.steps) for t in make.transports if t.steps]
    assert not left, f"{sum(left)} steps of the script were never asked for"
