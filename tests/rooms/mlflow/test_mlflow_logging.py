"""`compile --mlflow` and `mlflow_scorer`: with a strict stand-in for MLflow, and with MLflow itself if it is here."""

import json
import os
import random
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from json_lines import Rows, write

import judgesmith as js
from judgesmith.errors import ArtifactError, MissingExtraError, ModelError, OptionError
from judgesmith.programs.artifact import fingerprint
from judgesmith.programs.baselines.pairs import PairS
from judgesmith.rooms.mlflow import store as mlflow_store
from judgesmith.rooms.mlflow.logging import (
    ExperimentLog,
    by_aspect,
    metrics,
    mlflow_scorer,
    steps,
)
from judgesmith.rooms.mlflow.logging import feedback as logged_verdict

MODULES = (
    "mlflow",
    "mlflow.entities",
    "mlflow.genai",
    "mlflow.genai.scorers",
    "mlflow.artifacts",
)
#: A quarter of the rows is held out, as the tests of runs count them.
QUARTER = ("--heldout", 0.25)
#: What an obedient stand-in for MLflow takes in one request.
MOST_METRICS, MOST_PARAMS = 1000, 100


@dataclass
class Run:
    name: str
    tags: dict[str, str]
    start: int
    status: str = "RUNNING"
    params: dict[str, str] = field(default_factory=dict)
    metrics: dict[tuple[str, int], float] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    def at_step_0(self) -> dict[str, float]:
        return {
            name: value for (name, step), value in self.metrics.items() if step == 0
        }


@dataclass
class Store:
    """A tracking store. `broken` names the client's method that fails, with `says` as its message."""

    experiments: dict[str, types.SimpleNamespace] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    broken: str | None = None
    says: str = "API request to http://me:secret@tracking.example/api failed\nwith exception: refused"
    calls: int = 0

    def meet(self, method: str) -> None:
        self.calls += 1
        if method == self.broken:
            raise ConnectionError(self.says)


def param(key: str, value: str) -> Any:
    assert isinstance(value, str)
    assert len(value) <= 500
    return types.SimpleNamespace(key=key, value=value)


def metric(key: str, value: float, timestamp: int, step: int) -> Any:
    assert isinstance(value, float)
    assert value == value
    return types.SimpleNamespace(key=key, value=value, step=step)


def feedback(
    *,
    name: str,
    source: Any,
    metadata: dict[str, str],
    value: float | None = None,
    rationale: str | None = None,
    error: Any = None,
) -> Any:
    assert all(isinstance(text, str) for text in metadata.values())
    assert (value is None) == (error is not None)
    return types.SimpleNamespace(
        name=name,
        source=source,
        metadata=metadata,
        value=value,
        rationale=rationale,
        error=error,
    )


def client_of(store: Store) -> type:
    class MlflowClient:
        def get_experiment_by_name(self, name: str) -> Any:
            store.meet("get_experiment_by_name")
            return store.experiments.get(name)

        def create_experiment(self, name: str) -> str:
            store.meet("create_experiment")
            number = str(len(store.experiments) + 1)
            store.experiments[name] = types.SimpleNamespace(
                experiment_id=number, lifecycle_stage="active"
            )
            return number

        def create_run(
            self,
            experiment_id: str,
            start_time: int,
            tags: dict[str, str],
            run_name: str,
        ) -> Any:
            store.meet("create_run")
            assert experiment_id in {
                e.experiment_id for e in store.experiments.values()
            }
            assert all(isinstance(tag, str) for tag in tags.values())
            store.runs[f"run-{len(store.runs) + 1}"] = Run(run_name, tags, start_time)
            return types.SimpleNamespace(
                info=types.SimpleNamespace(run_id=f"run-{len(store.runs)}")
            )

        def log_batch(self, run_id: str, metrics: Any = (), params: Any = ()) -> None:
            store.meet("log_batch")
            assert len(metrics) <= MOST_METRICS
            assert len(params) <= MOST_PARAMS
            store.runs[run_id].params |= {p.key: p.value for p in params}
            store.runs[run_id].metrics |= {(m.key, m.step): m.value for m in metrics}

        def log_text(self, run_id: str, text: str, artifact_file: str) -> None:
            store.meet("log_text")
            store.runs[run_id].files[artifact_file] = text

        def set_terminated(self, run_id: str, status: str) -> None:
            store.meet("set_terminated")
            store.runs[run_id].status = status

    return MlflowClient


def put(monkeypatch: pytest.MonkeyPatch, modules: dict[str, Any]) -> None:
    for name in MODULES:
        monkeypatch.setitem(sys.modules, name, modules.get(name))


@pytest.fixture(autouse=True)
def settings_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    """A stand-in for MLflow, whether that is installed or not."""
    made = Store()

    def scorer(function: Any, *, name: str) -> Any:
        function.name = name
        return function

    put(
        monkeypatch,
        {
            "mlflow": types.SimpleNamespace(MlflowClient=client_of(made)),
            "mlflow.entities": types.SimpleNamespace(
                Param=param,
                Metric=metric,
                Feedback=feedback,
                AssessmentError=types.SimpleNamespace,
                AssessmentSource=types.SimpleNamespace,
            ),
            "mlflow.genai": types.SimpleNamespace(),
            "mlflow.genai.scorers": types.SimpleNamespace(scorer=scorer),
        },
    )
    return made


@pytest.fixture
def no_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, {})


def one_line(done: Any) -> str:
    (line,) = [
        line
        for line in done.err.splitlines()
        if not line.startswith(("at most ", "[", " "))
    ]
    return str(line)


# -- a compiled judge as a run ----------------------------------------------------------------------------------------


def test_a_run_holds_what_report_and_judge_say(
    store: Store, compile_: Any, rows_file: Rows, tmp_path: Path
) -> None:
    told = compile_(
        rows_file(48),
        *QUARTER,
        "--variant",
        "vanilla",
        "--seed",
        3,
        "--mlflow",
        "trial",
        "--json",
    ).told
    assert told["mlflow"] == {
        "experiment": "trial",
        "run": "run-1",
        "error": None,
        "model": None,
    }
    run = store.runs["run-1"]
    assert run.status == "FINISHED"
    assert run.name == "overall, active-critic, random-search"
    for name, value in {
        "method": "active-critic",
        "option.variant": "vanilla",
        "model": "openai/fake",
        "sampling.temperature": "0.0",
        "optimizer.name": "random-search",
        "optimizer.candidates": "2",
        "optimizer.racing": "false",
        "seed": "3",
        "labels.origin": "rows.jsonl",
        "labels.rows": "48",
        "labels.train": "36",
        "scale": "0 to 100",
        "folds": "0",
    }.items():
        assert run.params[name] == value, name
    assert len(run.params["labels.fingerprint"]) == 64
    at_0 = run.at_step_0()
    for part in ("heldout", "zero_shot"):
        for name in ("q", "low", "high", "n", "failed"):
            assert at_0[f"{part}.{name}"] == told[part][name]
        assert run.tags[f"judgesmith.{part}"] == told[part]["signature"]
    assert at_0["difference.value"] == told["difference"]["value"]
    # The same in every resample: there is no p, and none is logged.
    assert told["difference"]["p"] is None
    assert "difference.p" not in at_0
    assert (at_0["calls"], at_0["tokens"], at_0["seconds"]) == (
        told["calls"],
        told["tokens"],
        told["seconds"],
    )
    assert [run.metrics["candidate.q", n] for n in range(len(told["candidates"]))] == [
        c["q"] for c in told["candidates"]
    ]
    assert mlflow_scorer(tmp_path / "made.json").name == "overall"  # the aspect
    assert run.files["judge.json"] == (tmp_path / "made.json").read_text()
    del told["mlflow"], told["judge"]
    assert json.loads(run.files["report.json"]) == told
    assert set(run.files) == {"judge.json", "report.json"}


def test_neither_keys_nor_addresses_nor_labels_are_logged(
    store: Store,
    server: Any,
    compile_: Any,
    rows_file: Rows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-most-secret")
    labels = rows_file(48)
    said = compile_(labels, "--mlflow", "trial").said
    assert "Logged to the MLflow experiment trial, run run-1" in " ".join(said.split())
    judge, logged = (tmp_path / "made.json").read_text(), repr(store)
    for secret in (
        "sk-most-secret",
        server.base,
        server.base.split("//")[1].split("/")[0],
        str(tmp_path),
    ):
        assert secret not in logged
    texts = [json.loads(line)["output"] for line in labels.read_text().splitlines()]
    unseen = [text for text in texts if text not in judge]
    assert len(unseen) > 36
    assert not [text for text in unseen if text in logged]


def test_nothing_is_imported_or_logged_unasked(
    no_mlflow: None, compile_: Any, rows_file: Rows, tmp_path: Path
) -> None:
    told = compile_(rows_file(48), "--json").told
    assert "mlflow" not in told
    assert compile_(rows_file(48), "--mlflow", "trial", "--dry-run").code == 0


def test_without_the_extra_its_command_is_said_before_anything_is_spent(
    no_mlflow: None, server: Any, compile_: Any, rows_file: Rows, tmp_path: Path
) -> None:
    done = compile_(rows_file(48), "--mlflow", "trial")
    assert done.code == 2
    assert one_line(done).startswith("MissingExtraError: --mlflow needs mlflow")
    assert "pip install 'judgesmith[mlflow]'" in done.err
    assert server.asks == []
    assert not (tmp_path / "made.json").exists()


@pytest.mark.parametrize("broken", ["get_experiment_by_name", "create_experiment"])
def test_a_store_that_cannot_be_used_is_said_before_anything_is_spent(
    broken: str, store: Store, server: Any, compile_: Any, rows_file: Rows
) -> None:
    store.broken = broken
    done = compile_(rows_file(48), "--mlflow", "trial")
    assert done.code == 2
    line = one_line(done)
    assert (
        "OptionError: --mlflow trial: MLflow's tracking store cannot be used; see MLFLOW_TRACKING_URI"
        in line
    )
    assert "http://tracking.example/api failed with exception: refused" in line
    assert "secret" not in done.err
    assert server.asks == []


def test_an_experiment_that_was_deleted_or_has_no_name_is_refused(store: Store) -> None:
    store.experiments["gone"] = types.SimpleNamespace(
        experiment_id="7", lifecycle_stage="deleted"
    )
    with pytest.raises(
        OptionError,
        match=r"deleted; name another, or .*`mlflow experiments restore -x 7`",
    ):
        ExperimentLog("gone")
    with pytest.raises(OptionError, match="name the experiment"):
        ExperimentLog("  ")


@pytest.mark.parametrize(
    "broken", ["create_run", "log_batch", "log_text", "set_terminated"]
)
def test_a_failed_log_loses_no_judge(
    broken: str, store: Store, compile_: Any, rows_file: Rows, tmp_path: Path
) -> None:
    rows, store.broken = rows_file(48), broken
    done = compile_(rows, *QUARTER, "--mlflow", "trial", "--json")
    assert done.code == 1
    assert (
        js.load(tmp_path / "made.json", lm="openai/fake").provenance["labels"]["rows"]
        == 48
    )
    assert done.json["heldout"]["n"] == 12
    assert done.json["mlflow"]["error"].startswith(
        "API request to http://tracking.example/api failed"
    )
    missing = "has not logged it"
    if broken != "create_run":
        missing = "has only part of it, as run run-1"
    line = " ".join(done.err.split())
    assert f"the judge is saved, but MLflow {missing}: API request" in line
    assert "secret" not in done.err + done.out
    assert "Traceback" not in done.err
    if broken not in (
        "create_run",
        "set_terminated",
    ):  # which of itself cannot be said to have failed
        assert store.runs["run-1"].status == "FAILED"
    store.broken = None
    assert compile_(rows, *QUARTER, "--mlflow", "trial", "--json").json["calls"] == 0


@pytest.fixture
def compile_aspects(tmp_path: Path, cli: Any) -> Callable[..., Any]:
    """compile_aspects(…): two aspects from two judges' columns, without a model; the judge is made.json."""
    rng, rows = random.Random(0), []
    for place in range(40):
        one, two = rng.gauss(3, 1), rng.gauss(3, 1)
        rows.append(
            {
                "doc_id": f"d{place // 2}",
                "source": f"Source {place // 2} is about subject {place * 37 % 101}.",
                "output": " ".join(f"w{rng.randrange(9999)}" for _ in range(12)),
                "scores.fluency": min(5, max(1, round(one))),
                "scores.tone / voice": min(5, max(1, round(two))),
                "a": one + rng.gauss(0, 0.3),
                "b": two + rng.gauss(0, 0.3),
            }
        )
    labels = write(tmp_path / "labels.jsonl", rows)
    signals = ("--signal", "a=-1..7", "--signal", "b=-1..7")
    asked = ("compile", labels, "--aspect", "all", *signals, "-o")
    return lambda *more: cli(*asked, tmp_path / "made.json", *more)


def test_a_judge_of_several_aspects_is_one_run_with_the_figures_of_each(
    store: Store, compile_aspects: Any, tmp_path: Path
) -> None:
    done = compile_aspects("--cv", 3, "--mlflow", "trial", "--json")
    assert done.code == 0, done.err
    told = done.json
    run = store.runs["run-1"]
    assert (run.status, told["mlflow"]["error"]) == ("FINISHED", None)
    assert run.name == "fluency + tone / voice, aspects, zero-shot"
    assert run.params["aspects"] == "fluency, tone / voice"
    assert (run.params["method"], run.params["folds"]) == ("aspects", "3")
    at_0 = run.at_step_0()
    for aspect, name in {"fluency": "fluency", "tone / voice": "tone _ voice"}.items():
        heldout = told["aspects"][aspect]["heldout"]
        assert at_0[f"{name}.heldout.q"] == heldout["q"]
        assert run.tags[f"judgesmith.{name}.heldout"] == heldout["signature"]
        assert (f"{name}.candidate.q", 0) in run.metrics
    assert at_0["calls"] == told["calls"]
    assert run.files["judge.json"] == (tmp_path / "made.json").read_text()
    del told["mlflow"], told["judge"]
    assert json.loads(run.files["report.json"]) == told
    verdict = js.load(tmp_path / "made.json").score("S.", "An output.", a=3, b=4)
    entities = sys.modules["mlflow.entities"]
    found = logged_verdict(
        entities, {"name": "n", "source": 1, "metadata": {}}, verdict
    )
    scores = json.loads(found.metadata["aspects"])
    assert scores == pytest.approx(
        {name: one.score for name, one in verdict.aspects.items()}, abs=1e-3
    )


def test_a_failed_log_loses_no_judge_of_several_aspects(
    store: Store, compile_aspects: Any, tmp_path: Path
) -> None:
    store.broken = "log_batch"
    done = compile_aspects("--mlflow", "trial")
    assert done.code == 1
    assert "the judge is saved, but MLflow has only part of it, as run run-1" in (
        " ".join(done.err.split())
    )
    assert js.load(tmp_path / "made.json").method.kind == "aspects"


def test_aspects_that_differ_in_signs_alone_have_names_of_their_own() -> None:
    report = {"aspects": {name: {} for name in ("a/b", "a:b", "a.b")}}
    assert list(by_aspect(report)) == ["a_b.", "a_b_2.", "a_b_3."]


def test_an_undefined_number_is_left_out() -> None:
    nothing = dict.fromkeys(("q", "low", "high", "pearson", "spearman", "kendall"))
    told = {
        "heldout": nothing | {"n": 12, "failed": 12},
        "zero_shot": nothing | {"q": 0.5, "n": 12, "failed": 0},
        "difference": dict.fromkeys(("value", "low", "high", "p")),
        "mean_absolute_error": {"calibrated": float("nan"), "uncalibrated": 0.25},
        "selected": {"candidate": "zero-shot", "demos": 0, "q": None},
        **dict.fromkeys(
            ("calls", "cached_calls", "tokens", "prompt_tokens", "completion_tokens"), 3
        ),
        "seconds": 1.5,
    }
    assert {name: value for name, value, _ in metrics(told)} == {
        "heldout.n": 12,
        "heldout.failed": 12,
        "zero_shot.q": 0.5,
        "zero_shot.n": 12,
        "zero_shot.failed": 0,
        "mean_absolute_error.uncalibrated": 0.25,
        "selected.demos": 0,
        "seconds": 1.5,
        "calls": 3,
        "cached_calls": 3,
        "tokens": 3,
        "prompt_tokens": 3,
        "completion_tokens": 3,
    }


def test_a_dropped_candidate_is_no_point_of_the_curve() -> None:
    tried = [
        {"candidate": "zero-shot", "q": 0.5, "failed": 0, "dropped": None},
        {"candidate": "set 1", "q": 2.9, "failed": 0, "dropped": "after 8 rows"},
        {"candidate": "set 2", "q": None, "failed": 5, "dropped": None},
    ]
    assert steps(tried) == [
        ("candidate.q", 0.5, 0),
        ("candidate.failed", 0.0, 0),
        ("candidate.failed", 5.0, 2),
    ]


def test_a_long_search_is_logged_in_several_requests(store: Store) -> None:
    log = ExperimentLog("trial")
    store.runs["run-1"] = Run("", {}, 0)
    log._numbers(
        "run-1",
        {f"p{n}": "v" for n in range(250)},
        [("candidate.q", n / 7, n) for n in range(2500)],
        1,
    )
    assert len(store.runs["run-1"].params) == 250
    assert store.runs["run-1"].metrics["candidate.q", 2499] == 2499 / 7


@pytest.mark.parametrize(("given", "kept"), [(None, "true"), ("false", "false")])
def test_usage_statistics_stay_off_unless_the_user_wants_them(
    given: str | None, kept: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY")
    if given is not None:
        monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", given)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "77")
    seen: dict[str, str | None] = {}

    def look(method: str) -> None:
        seen.update(
            {
                name: value
                for name, value in os.environ.items()
                if name.startswith("MLFLOW_")
            }
        )

    monkeypatch.setattr(store, "meet", look)
    ExperimentLog("trial")
    assert seen == {
        "MLFLOW_DISABLE_TELEMETRY": kept,
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
        "MLFLOW_HTTP_REQUEST_TIMEOUT": "77",  # the user's own
        "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
        "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    }
    assert (
        not {
            "MLFLOW_HTTP_REQUEST_MAX_RETRIES",
            "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT",
        }
        & os.environ.keys()
    )


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("cannot reach\n http://a:b@c.example/x", "cannot reach http://c.example/x"),
        (
            "API request to http://a:b@c/api failed with exception HTTPConnectionPool(host='c', port=9): Max retries "
            "exceeded with url: /api (Caused by NewConnectionError(\"HTTPConnection(host='c', port=9): No new "
            'connection: [Errno 111] Connection refused"))',
            "API request to http://c/api failed: [Errno 111] Connection refused",
        ),
        ("", "ValueError"),
        ("x" * 400, "x" * 299 + "…"),
    ],
)
def test_a_foreign_message_is_one_short_line_without_a_password(
    said: str, shown: str
) -> None:
    assert mlflow_store.short(ValueError(said)) == shown


# -- a judge as a scorer ----------------------------------------------------------------------------------------------


@pytest.fixture
def scorer(store: Store, server: Any, judge_file: Path) -> Callable[..., Any]:
    """scorer(name=…): of the saved judge, against the loopback server."""

    def make(**options: Any) -> Any:
        return mlflow_scorer(
            judge_file, connection=js.Connection(server.base), **options
        )

    return make


def test_a_verdict_becomes_feedback(
    scorer: Any, server: Any, fake: Any, judge_file: Path
) -> None:
    server.answer = fake.judging(lambda ask: 70)
    rate = scorer()
    verdict = js.load(judge_file, connection=js.Connection(server.base)).score(
        "A notice.", "Summary r001."
    )
    found = rate(inputs={"source": "A notice."}, outputs="Summary r001.")
    assert rate.name == found.name == "active-critic"  # compiled for no aspect
    assert (found.value, found.rationale, found.error) == (
        70.0,
        verdict.explanation,
        None,
    )
    assert found.rationale
    assert found.source == types.SimpleNamespace(
        source_type="LLM_JUDGE", source_id="openai/fake"
    )
    assert found.metadata["scale"] == "0..100"
    assert len(found.metadata["judge"]) == 12
    assert (
        scorer(name="mine")(inputs="A notice.", outputs="Summary r001.").name == "mine"
    )


def test_a_failed_verdict_is_an_error_and_never_a_number(
    scorer: Any, server: Any
) -> None:
    server.answer = lambda ask: "4" if ask.step == "probe" else "Not a chance."
    found = scorer()(inputs="A notice.", outputs="Summary r001.")
    assert found.value is None
    assert found.error.error_code == "NoScore"
    assert found.error.error_message
    empty = scorer()(inputs="A notice.", outputs=None)
    assert (empty.value, empty.error.error_message) == (None, "the output is empty")


def test_a_model_that_refuses_is_an_error_without_its_address(
    scorer: Any, server: Any, fake: Any
) -> None:
    server.answer = lambda ask: fake.Fault(
        401, f'{{"error": {{"message": "bad key for {server.base}/x"}}}}'
    )
    found = scorer()(inputs="A notice.", outputs="Summary r001.")
    assert found.value is None
    assert found.error.error_code in ("ModelError", "NoScore")
    assert found.error.error_message
    assert server.base.split("//")[1].split("/")[0] not in found.error.error_message


#: What `mlflow.openai.autolog()` of MLflow 3.17.2 keeps of a call of the OpenAI client 2.
AUTOLOG = {
    "inputs": {
        "model": "gpt-x",
        "temperature": 0,
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Is it open?"},
        ],
    },
    "outputs": {
        "id": "x",
        "choices": [
            {
                "finish_reason": "stop",
                "index": 0,
                "logprobs": None,
                "message": {
                    "content": "Till noon.",
                    "refusal": None,
                    "role": "assistant",
                    "tool_calls": None,
                },
            }
        ],
        "model": "gpt-x",
        "object": "chat.completion",
        "usage": {"completion_tokens": 5, "prompt_tokens": 10, "total_tokens": None},
    },
}


@pytest.mark.parametrize(
    ("inputs", "outputs", "expectations", "expected"),
    [
        ("S", "O", None, ("S", "O", None, None)),
        (None, "O", {}, ("", "O", None, None)),
        (
            {"question": "S"},
            {"answer": "O"},
            {"expected_response": "R"},
            ("S", "O", None, "R"),
        ),
        ({"question": "S", "context": "C"}, "O", {"other": "x"}, ("S", "O", "C", None)),
        (
            {"source": "S", "id": 7},
            {"output": "O", "cost": 1},
            {"reference": "R"},
            ("S", "O", None, "R"),
        ),
        (
            {"messages": [{"role": "user", "content": "é"}]},
            4.5,
            None,
            ("User: é", "4.5", None, None),
        ),
        (
            *AUTOLOG.values(),
            None,
            ("System: Be kind.\nUser: Is it open?", "Till noon.", None, None),
        ),
        (
            {"question": "S", "context": ["C", "D"]},
            "O",
            None,
            ("S", "O", "[1] C\n[2] D", None),
        ),
    ],
)
def test_what_is_judged_comes_from_what_mlflow_hands_over(
    inputs: Any,
    outputs: Any,
    expectations: Any,
    expected: Any,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge, asked = js.Judge(js.ActiveCritic("vanilla"), lm="openai/fake"), []

    def score(
        source: str, output: str, *, context: str | None, reference: str | None
    ) -> Any:
        asked.append((source, output, context, reference))
        return js.Verdict(score=3.0)

    monkeypatch.setattr(judge, "score", score)
    found = mlflow_scorer(judge)(
        inputs=inputs, outputs=outputs, expectations=expectations
    )
    assert found.error is None
    assert asked == [expected]


@pytest.mark.parametrize("role", ["source", "output"])
def test_what_is_not_clear_is_said_and_not_guessed(
    role: str, scorer: Any, server: Any
) -> None:
    parts = {"source": "inputs", "output": "outputs"}
    given = dict.fromkeys(parts.values(), "S") | {parts[role]: {"a": "x", "b": "y"}}
    found = scorer()(**given)
    assert (found.value, found.error.error_code, server.judged) == (
        None,
        "OptionError",
        [],
    )
    message = f"{parts[role]} has several parts ('a', 'b'); call the one that is judged '{role}'"
    assert message in found.error.error_message


def test_judges_that_cannot_be_scorers_are_refused(
    store: Store, judge_file: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        OptionError, match="against each other; an MLflow scorer sees one alone"
    ):
        mlflow_scorer(js.Judge(PairS(), lm="openai/fake"))
    with pytest.raises(ModelError, match="no language model"):
        mlflow_scorer(js.Judge(js.ActiveCritic("vanilla")))
    with pytest.raises(OptionError, match="has its model already"):
        mlflow_scorer(
            js.Judge(js.ActiveCritic("vanilla"), lm="openai/fake"),
            connection=js.Connection(server.base),
        )


def test_registering_without_a_name_is_refused_and_loading_names_the_extra(
    no_mlflow: None, compile_: Any, rows_file: Rows, server: Any
) -> None:
    for name in ("@champion", "a/b", "notices@"):
        compile_(rows_file(48), "--register", name).refused("give NAME or NAME@ALIAS")
    assert server.asks == []
    for open_judge in (js.load, mlflow_scorer):
        with pytest.raises(
            MissingExtraError, match=r"pip install 'judgesmith\[mlflow\]'"
        ):
            open_judge("models:/notices@champion")


# -- MLflow itself ----------------------------------------------------------------------------------------------------


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """MLflow with a store of its own in an empty folder, as it makes one where nothing is set."""
    mlflow = pytest.importorskip("mlflow", minversion="3.0")
    monkeypatch.chdir(tmp_path)
    yield mlflow
    while mlflow.active_run() is not None:
        mlflow.end_run()


def test_mlflow_keeps_the_run(
    real: Any, compile_: Any, rows_file: Rows, tmp_path: Path
) -> None:
    done = compile_(rows_file(48), "--mlflow", "trial", "--json")
    assert done.code == 0, done.err
    told = done.json
    assert done.err.count("INFO") == 0
    assert (tmp_path / "mlflow.db").exists()
    client = real.MlflowClient()
    run = client.get_run(told["mlflow"]["run"])
    assert run.info.status == "FINISHED"
    assert run.info.end_time - run.info.start_time >= 1000 * told["seconds"] - 100
    assert client.get_experiment(run.info.experiment_id).name == "trial"
    assert run.data.params["method"] == "active-critic"
    assert run.data.metrics["heldout.q"] == told["heldout"]["q"]
    curve = client.get_metric_history(run.info.run_id, "candidate.q")
    assert [(m.step, m.value) for m in curve] == [
        (n, c["q"]) for n, c in enumerate(told["candidates"])
    ]
    fetched = real.artifacts.load_text(f"{run.info.artifact_uri}/judge.json")
    assert fetched == (tmp_path / "made.json").read_text()


def test_a_registered_judge_is_loaded_by_its_alias(
    real: Any, compile_: Any, rows_file: Rows, tmp_path: Path, cli: Any, server: Any
) -> None:
    told = compile_(rows_file(48), "--register", "notices@champion", "--json").told
    assert told["mlflow"]["experiment"] == "notices"
    assert told["mlflow"]["model"] == "models:/notices@champion"
    version = real.MlflowClient().get_model_version_by_alias("notices", "champion")
    where = js.Connection(server.base)
    made, again = (
        js.load(tmp_path / "made.json"),
        js.load("models:/notices@champion", connection=where),
    )
    assert version.tags["judgesmith.judge"] == fingerprint(made) == fingerprint(again)
    assert again.score("A notice.", "Summary r001.").failure is None
    assert cli("show", "models:/notices/1", "--json").json[
        "fingerprint"
    ] == fingerprint(made)
    assert (
        compile_(rows_file(48), "--register", "notices", "--json").json["mlflow"][
            "model"
        ]
        == "models:/notices/2"
    )
    # What lies there is read like any other file: data, or nothing.
    (folder,) = (tmp_path / "mlruns").rglob(f"{version.run_id}/artifacts")
    (folder / "judge.json").write_text('{"format": "judgesmith.judge/9"}')
    with pytest.raises(ArtifactError, match=r"has format 'judgesmith\.judge/9'"):
        js.load("models:/notices@champion")
    for address in ("models:/notices@nobody", "models:/none/1", "models:/notices/7"):
        with pytest.raises(ArtifactError, match="cannot be fetched from MLflow"):
            js.load(address)


def test_a_judge_of_several_aspects_is_registered_as_one(
    real: Any, compile_aspects: Any, tmp_path: Path
) -> None:
    done = compile_aspects("--register", "tones@champion", "--json")
    assert done.code == 0, done.err
    told = done.json["mlflow"]
    assert (told["model"], told["error"]) == ("models:/tones@champion", None)
    logged = real.MlflowClient().get_run(told["run"]).data.metrics
    expected = done.json["aspects"]["tone / voice"]["heldout"]["q"]
    assert logged["tone _ voice.heldout.q"] == pytest.approx(expected)
    again = js.load("models:/tones@champion")
    assert fingerprint(again) == fingerprint(js.load(tmp_path / "made.json"))
    assert set(again.score("S.", "A text.", a=3, b=4).aspects) == set(
        done.json["aspects"]
    )


def test_mlflow_evaluates_with_the_judge(
    real: Any, compile_: Any, rows_file: Rows, server: Any, fake: Any
) -> None:
    done = compile_(
        rows_file(48), "--task", "t", "--no-use-criteria", "--mlflow", "trial", "--json"
    )
    where = f"runs:/{done.json['mlflow']['run']}/judge.json"
    server.answer = fake.judging(lambda ask: 40 if ask.mark == "r001" else 80)
    real.set_experiment("trial")
    rate = mlflow_scorer(where, connection=js.Connection(server.base), name="quality")
    found = real.genai.evaluate(
        data=[
            {
                "inputs": {"q": "A notice."},
                "outputs": "Summary r001.",
                "expectations": {"expected_response": "R"},
            },
            {"inputs": {"q": "A notice."}, "outputs": "Summary r002."},
            {"inputs": {"q": "A notice."}, "outputs": " "},
            {"inputs": {"one": "x", "two": "y"}, "outputs": "Summary r003."},
        ],
        scorers=[rate],
    )
    by_output = {row["response"]: row for row in found.result_df.to_dict("records")}
    assert (
        len(by_output) == len(real.search_traces()) == 4
    )  # the judge's own calls leave no traces
    judge = js.load(
        real.artifacts.download_artifacts(where), connection=js.Connection(server.base)
    )
    one, other = (judge.score("A notice.", f"Summary r00{n}.").score for n in (1, 2))
    assert by_output["Summary r001."]["quality/value"] == pytest.approx(one)
    assert by_output["Summary r002."]["quality/value"] == pytest.approx(other)
    assert found.metrics["quality/mean"] == pytest.approx(
        (one + other) / 2
    )  # rows without a score are no zeros
    for output, reason in (
        (" ", "the output is empty"),
        ("Summary r003.", "call the one that is judged"),
    ):
        (told,) = [
            a["feedback"]
            for a in by_output[output]["assessments"]
            if a["assessment_name"] == "quality"
        ]
        assert told["value"] is None
        assert reason in told["error"]["error_message"]


@pytest.mark.parametrize(
    "address", ["127.0.0.1:5000", "localhost:5000/x", "mlflow.example:80", "[::1]:5000"]
)
def test_an_address_without_its_scheme_is_said(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    with pytest.raises(OptionError, match=f"write http://{re.escape(address)}"):
        mlflow_store.check_address()
    for other in (
        "http://127.0.0.1:5000",
        "sqlite:///m.db",
        "./mlruns",
        "databricks",
        "C:/mlruns",
        "",
    ):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", other)
        mlflow_store.check_address()
