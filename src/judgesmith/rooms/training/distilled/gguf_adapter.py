"""Low-rank weights in llama.cpp's format, so that it runs them over the very file that they were trained on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from judgesmith.errors import ModelError
from judgesmith.rooms.training.distilled.student import Shape

GGUF_ADAPTER = "adapter.gguf"
_NAME = re.compile(r"base_model\.model\.(?P<layer>.+)\.lora_(?P<side>[AB])\.weight")
Array = NDArray[np.float32]


def write_gguf_adapter(
    target: Path, weights: Mapping[str, Array], base: Path, shape: Shape
) -> None:
    """Write peft's weights as an adapter of the model in a GGUF file.

    weights: peft's name -> array; A is rank x inputs, B is outputs x rank.

    Raises:
        ModelError: If llama.cpp has no name for the architecture or a layer.
    """
    import gguf  # type: ignore[import-untyped,import-not-found,unused-ignore]

    reader = gguf.GGUFReader(str(base))
    kind = str(reader.fields["general.architecture"].contents())

    def number(key: str) -> int:
        return int(reader.fields[f"{kind}.{key}"].contents())

    architecture = next(
        (key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == kind), None
    )
    if architecture is None:
        raise ModelError(
            f"{base.name}: models of kind {kind!r} cannot be written as an adapter"
        )
    names = gguf.get_tensor_name_map(architecture, number("block_count"))
    # In files of the llama family the rows of each attention head stand in another order, for rotary positions that
    # take neighbours for a pair.
    if kind == "llama":
        heads = {"attn_q": "attention.head_count", "attn_k": "attention.head_count_kv"}
    else:
        heads = {}
    writer = gguf.GGUFWriter(str(target), kind)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", shape.alpha)
    for name, array in sorted(weights.items()):
        match = _NAME.fullmatch(name)
        layer = match and names.get_name(match["layer"])
        if match is None or layer is None:
            raise ModelError(
                f"{base.name}: llama.cpp has no name for the layer {name!r}"
            )
        count = heads.get(layer.rpartition(".")[2])
        if match["side"] == "B" and count is not None:
            array = (
                array.reshape(number(count), 2, -1, array.shape[1])
                .swapaxes(1, 2)
                .reshape(array.shape)
            )
        writer.add_tensor(
            f"{layer}.weight.lora_{match['side'].lower()}",
            np.ascontiguousarray(array, np.float32),
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
