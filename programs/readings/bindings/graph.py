"""The graph of a Llama or Qwen2 model for OpenVINO, from the tensors of a GGUF file. Extra: `local`.

Weights are bytes in groups (`weights`), which the processor multiplies as 16-bit floats where it has instructions for
these, else in 8 bits with float sums. The sums along the layers stay 32-bit floats.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from judgesmith.errors import ModelError
from judgesmith.extras import from_extra
from judgesmith.programs.readings.bindings.weights import Weights
from judgesmith.programs.readings.reader import Floats

#: Settings whose models compute otherwise; a file that has one is not read here.
_OTHERWISE = (
    "expert_count",
    "attention.sliding_window",
    "rope.scaling.type",
    "attention.key_length_mla",
)


#: Keys of a block: no processor adds up more at a time.
BLOCK = 64


@dataclass(frozen=True)
class Shape:
    """Sizes of a model.

    heads, shared: attention's heads, and the keys and values that they share. turned: whether the file keeps a head's
    rotated columns in pairs, as Llama's files do, instead of in halves.
    """

    layers: int
    width: int
    heads: int
    shared: int
    head: int
    epsilon: float
    context: int
    turned: bool

    @classmethod
    def of(cls, weights: Weights) -> Self:
        """Read the sizes of a file.

        Raises:
            ModelError: For a kind of model that cannot be read here.
        """
        kind = weights.settings.get("general.architecture")
        if kind not in ("llama", "qwen2"):
            raise ModelError(f"models of the kind {kind} are not known here")
        for name in _OTHERWISE:
            if weights.setting(name) not in (None, 0, "none"):
                raise ModelError(f"a model with {name} is not known here")
        try:
            width = weights.setting("embedding_length")
            heads = weights.setting("attention.head_count")
            head = weights.setting("attention.key_length", width // heads)
            shape = cls(
                layers=weights.setting("block_count"),
                width=width,
                heads=heads,
                shared=weights.setting("attention.head_count_kv", heads),
                head=head,
                epsilon=weights.setting("attention.layer_norm_rms_epsilon"),
                context=weights.setting("context_length"),
                turned=kind == "llama",
            )
        except TypeError as error:
            raise ModelError("the file does not say the model's sizes") from error
        if (
            weights.setting("rope.dimension_count", head) != head
            or weights.setting("attention.value_length", head) != head
        ):
            raise ModelError(
                "a model that rotates a part of its heads is not known here"
            )
        return shape


@dataclass(frozen=True)
class Adapter:
    """Low-rank weights of a GGUF file, that are added to a model's."""

    weights: Weights

    def of(self, name: str) -> Floats | None:
        """Return the addition to a matrix; None without one."""
        if f"{name}.lora_a" not in self.weights.tensors:
            return None
        first, second = (self.weights.floats(f"{name}.lora_{half}") for half in "ab")
        scale = self.weights.settings.get("adapter.lora.alpha", len(first)) / len(first)
        product: Floats = (second @ first) * np.float32(scale)
        return product


class Body:
    """The layers' graph.

    Inputs: `rows` (rows x tokens x width), `cos` and `sin` of the tokens' places, `hidden`, what each token does not
    see (-inf), `counted`, the tokens whose states are added up, `wanted`, the places of those that the last layer is
    computed for (the counted ones at least), keys and values of what stands before, and `nothing`, zeros that fill up
    the keys to whole blocks. Outputs: `new_key…` and `new_value…` of the tokens, `sum…` of each layer's states over the
    counted ones, and `last`, the last layer's states of the wanted ones, after the norm in the model's last layer.

    Args:
        until: the layer that is computed last.
    """

    def __init__(
        self,
        weights: Weights,
        shape: Shape,
        until: int,
        threads: int,
        adapter: Adapter | None,
    ) -> None:
        self._weights = weights
        self._shape = shape
        self._threads = threads
        self._adapter = adapter
        self._op = openvino().opset13
        self._ov = openvino()
        self._inputs = list[Any]()
        self._outputs = list[Any]()
        self.model = self._built(until)

    def _built(self, until: int) -> Any:
        shape = self._shape
        op = self._op
        states = self._input("rows", [-1, -1, shape.width])
        turn = (
            self._input("cos", [-1, shape.head]),
            self._input("sin", [-1, shape.head]),
        )
        hidden = self._input("hidden", [1, 1, -1, -1])
        self._nothing = self._input("nothing", [-1, shape.shared, -1, shape.head])
        counted = op.unsqueeze(self._input("counted", [-1, -1]), _whole(op, 2))
        wanted = self._input("wanted", [-1], self._ov.Type.i32)
        for layer in range(until):
            block = f"blk.{layer}"
            seen = self._attention(
                self._normed(states, f"{block}.attn_norm"), layer, turn, hidden
            )
            if layer + 1 == until:
                # Other tokens give keys and values there, and nothing else is read of them.
                seen, states, counted = (
                    op.gather(of, wanted, _whole(op, 1))
                    for of in (seen, states, counted)
                )
            states = op.add(states, self._product(seen, f"{block}.attn_output"))
            inner = self._normed(states, f"{block}.ffn_norm")
            gate = op.swish(self._product(inner, f"{block}.ffn_gate"))
            inner = op.multiply(gate, self._product(inner, f"{block}.ffn_up"))
            states = op.add(states, self._product(inner, f"{block}.ffn_down"))
            if layer + 1 == shape.layers:
                states = self._normed(states, "output_norm")
            self._output(
                f"sum{layer + 1}",
                op.reduce_sum(op.multiply(states, counted), _whole(op, 1), False),
            )
        self._output("last", states)
        return self._ov.Model(self._outputs, self._inputs, "body")

    def _attention(
        self, inner: Any, layer: int, turn: tuple[Any, Any], hidden: Any
    ) -> Any:
        shape = self._shape
        op = self._op
        block = f"blk.{layer}"
        queries = self._turned(
            self._heads(
                self._product(inner, f"{block}.attn_q", shape.heads), shape.heads
            ),
            turn,
        )
        key = self._turned(
            self._heads(
                self._product(inner, f"{block}.attn_k", shape.shared), shape.shared
            ),
            turn,
        )
        value = self._heads(self._product(inner, f"{block}.attn_v"), shape.shared)
        both = [("key", key), ("value", value)]
        for name, new in both:
            self._output(f"new_{name}{layer}", new)
        cached = [
            self._input(f"{name}{layer}", [-1, shape.shared, -1, shape.head])
            for name, _ in both
        ]
        keys, values = (
            self._each_head(op.concat([old, new, self._nothing], 2))
            for old, (_, new) in zip(cached, both, strict=True)
        )
        seen = op.scaled_dot_product_attention(queries, keys, values, hidden)
        seen = op.transpose(seen, _whole(op, 0, 2, 1, 3))
        return op.reshape(seen, _whole(op, 0, 0, shape.heads * shape.head), True)

    def _heads(self, states: Any, count: int) -> Any:
        op = self._op
        return op.transpose(
            op.reshape(states, _whole(op, 0, 0, count, self._shape.head), True),
            _whole(op, 0, 2, 1, 3),
        )

    def _each_head(self, shared: Any) -> Any:
        """Keys or values for each head, of those that heads share."""
        op = self._op
        shape = self._shape
        times = shape.heads // shape.shared
        if times == 1:
            return shared
        copies = op.broadcast(
            op.unsqueeze(shared, _whole(op, 2)),
            _whole(op, 1, 1, times, 1, 1),
            broadcast_spec="BIDIRECTIONAL",
        )
        return op.reshape(copies, _whole(op, 0, shape.heads, -1, shape.head), True)

    def _turned(self, heads: Any, turn: tuple[Any, Any]) -> Any:
        """Rotated by the tokens' places."""
        op = self._op
        first, second = op.split(heads, op.constant(3), 2).outputs()
        rotated = op.concat(
            [op.multiply(second, op.constant(np.float32(-1))), first], 3
        )
        return op.add(op.multiply(heads, turn[0]), op.multiply(rotated, turn[1]))

    def _normed(self, states: Any, name: str) -> Any:
        op = self._op
        shape = self._shape
        size = op.reduce_mean(op.multiply(states, states), _whole(op, -1), True)
        scale = op.divide(
            op.constant(np.float32(1)),
            op.sqrt(op.add(size, op.constant(np.float32(shape.epsilon)))),
        )
        return op.multiply(
            op.multiply(states, scale),
            op.constant(self._weights.floats(f"{name}.weight")[None, None]),
        )

    def _product(self, states: Any, name: str, turned: int = 0) -> Any:
        """States times a matrix, with its bias where there is one. turned: heads whose columns the rotation takes."""
        op = self._op
        weights = self._weights
        order = self._order(turned)
        added = self._adapter.of(f"{name}.weight") if self._adapter else None
        result = op.matmul(
            states,
            matrix(weights, f"{name}.weight", self._threads, order, added),
            False,
            True,
        )
        if f"{name}.bias" not in weights.tensors:
            return result
        bias = weights.floats(f"{name}.bias")
        return op.add(
            result, op.constant((bias if order is None else bias[order])[None, None])
        )

    def _order(self, heads: int) -> Any:
        """The rows of a matrix whose heads are rotated, in halves."""
        if not heads or not self._shape.turned:
            return None
        size = self._shape.head
        return (
            np.arange(heads * size)
            .reshape(heads, size // 2, 2)
            .swapaxes(1, 2)
            .reshape(-1)
        )

    def _input(self, name: str, shape: list[int], kind: Any = None) -> Any:
        parameter = self._op.parameter(shape, kind or self._ov.Type.f32, name=name)
        parameter.output(0).get_tensor().set_names({name})
        self._inputs.append(parameter)
        return parameter

    def _output(self, name: str, node: Any) -> None:
        self._outputs.append(_named(self._op, name, node))


def head(weights: Weights, threads: int) -> Any:
    """Return the graph of the part after the last state.

    From `states` (tokens x width) and the tokens that come `next` (tokens x 1) it gives `logp`, `entropy` and `top`, as
    `token_numbers` does, and `all` words' log-probabilities.
    """
    op = openvino().opset13
    types = openvino().Type
    if "output.weight" in weights.tensors:
        name = "output.weight"
    else:
        name = "token_embd.weight"
    width = weights.tensors[name].shape[1]
    states = op.parameter([-1, width], types.f32, name="states")
    following = op.parameter([-1, 1], types.i64, name="next")
    for parameter in (states, following):
        own_name = parameter.get_friendly_name()
        parameter.output(0).get_tensor().set_names({own_name})
    logp = op.log_softmax(
        op.matmul(states, matrix(weights, name, threads), False, True), 1
    )
    outputs = [
        _named(op, "logp", op.gather_elements(logp, following, 1)),
        _named(
            op,
            "entropy",
            op.negative(
                op.reduce_sum(op.multiply(op.exp(logp), logp), _whole(op, 1), False)
            ),
        ),
        _named(op, "top", op.reduce_max(logp, _whole(op, 1), False)),
        _named(op, "all", logp),
    ]
    return openvino().Model(outputs, [states, following], "head")


def matrix(
    weights: Weights,
    name: str,
    threads: int,
    order: Any = None,
    added: Floats | None = None,
) -> Any:
    """Return a matrix as a constant in groups, in another order of rows if one is given."""
    op = openvino().opset13
    types = openvino().Type
    groups = weights.groups(name, threads=threads, added=added)
    (rows, width) = weights.tensors[name].shape
    both = groups.numbers, groups.scales
    if order is not None:
        for part in both:
            part[:] = part[order]
    numbers, scales = (op.constant(part, shared_memory=True) for part in both)
    scaled = op.multiply(op.convert(numbers, types.f16), scales)
    return op.convert(op.reshape(scaled, _whole(op, rows, width), False), types.f32)


@dataclass
class Turns:
    """Cosine and sine of every place's rotation."""

    weights: Weights
    shape: Shape
    _tables: dict[str, Floats] = field(default_factory=dict)

    def __call__(self, first: int, count: int) -> Mapping[str, Floats]:
        """Of some places: places x columns of a head."""
        if not self._tables:
            size = self.shape.head
            speeds = self.weights.setting("rope.freq_base", 10000.0) ** -(
                np.arange(0, size, 2) / size
            )
            if "rope_freqs.weight" in self.weights.tensors:
                speeds = speeds / self.weights.floats("rope_freqs.weight")
            angles = np.tile(np.arange(self.shape.context)[:, None] * speeds[None], 2)
            self._tables = {
                "cos": np.cos(angles).astype(np.float32),
                "sin": np.sin(angles).astype(np.float32),
            }
        return {
            name: table[first : first + count] for name, table in self._tables.items()
        }


def hidden(before: int, count: int) -> Floats:
    """Return the mask of each of `count` tokens over the keys: everything behind it.

    Keys are filled up to whole blocks. A processor adds up the keys of a token lane by lane: only if each number of
    keys is one of whole blocks, the sum does not depend on how many there are behind it.
    """
    keys = -(-(before + count) // BLOCK) * BLOCK
    return np.triu(np.full((count, keys), -math.inf, np.float32), before + 1)[
        None, None
    ]


def _named(op: Any, name: str, node: Any) -> Any:
    output = node if hasattr(node, "get_tensor") else node.output(0)
    output.get_tensor().set_names({name})
    return op.result(output)


def _whole(op: Any, *numbers: int) -> Any:
    return op.constant(np.array(numbers, np.int64))


def openvino() -> Any:
    """Return the package.

    Raises:
        MissingExtraError: If it is not installed.
    """
    # Its import reports to an analytics service and leaves a client's number in the home folder, in a process forked
    # off this one. All of that rests on one package, without which it does neither.
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    return from_extra("local", "fast reading", "openvino", "openvino.opset13")


def precision() -> str:
    """Return how this processor multiplies: `bf16`, as 16-bit floats, if it has instructions for these, else `f32`."""
    able = openvino().Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    return "bf16" if "BF16" in able else "f32"


def way(weights: Weights) -> str:
    """Return what tells the numbers of this way of computing from others: precision, and columns of a group."""
    return f"openvino {precision()} {weights.group}"


def compiled(model: Any, threads: int, group: int, *, results: str = "") -> Any:
    """Return a graph compiled for this processor.

    Where weights have 8 bits, OpenVINO gives the states 8 bits, too. Without that (a group of 0) products take one and
    a half to two times as long.

    Args:
        model: The graph.
        threads: Threads that compute.
        group: Columns of the states that share a scale.
        results: The precision of what products give; "" is `precision`.
    """
    options = {
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": group,
        "INFERENCE_PRECISION_HINT": results or precision(),
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "ENABLE_CPU_PINNING": False,
    }
    return openvino().Core().compile_model(model, "CPU", options)
