"""Low-rank weights in llama.cpp's format, so that it runs them over the very file that they were trained on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError
from .student import Shape

GGUF_ADAPTER = "adapter.gguf"
_NAME = re.compile(r"base_model\.model\.(?P<layer>.+)\.lora_(?P<side>[AB])\.weight")
Array = NDArray[np.float32]


def write_gguf_adapter(target: Path, weights: Mapping[str, Array], base: Path, shape: Shape) -> None:
    """Write peft's weights as an adapter of the model in a GGUF file.

    weights: peft's name -> array; A is rank x inputs, B is outputs x rank. Raises ModelError for architectures and
    layers that llama.cpp has no name for.
    """
    import gguf  # type: ignore[import-untyped,import-not-found,unused-ignore]

    about = _of_file(gguf.GGUFReader(str(base)))
    architecture = next((key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == about.architecture), None)
    if architecture is None:
        raise ModelError(f"{base.name}: models of kind {about.architecture!r} cannot be written as an adapter")
    names = gguf.get_tensor_name_map(architecture, about.blocks)
    writer = gguf.GGUFWriter(str(target), about.architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", shape.alpha)
    for name, array in sorted(weights.items()):
        match = _NAME.fullmatch(name)
        known = match and names.get_name(match["layer"])
        if match is None or known is None:
            raise ModelError(f"{base.name}: llama.cpp has no name for the layer {name!r}")
        array = about.turned(known, array) if match["side"] == "B" else array
        writer.add_tensor(f"{known}.weight.lora_{match['side'].lower()}", np.ascontiguousarray(array, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@dataclass(frozen=True)
class _About:
    """What is known of a model: its architecture by llama.cpp's name, its blocks, and its heads by layer."""

    architecture: str
    blocks: int
    heads: Mapping[str, int]

    def turned(self, name: str, array: Array) -> Array:
        """In files of the llama family the rows of each attention head stand in another order, for rotary positions
        that take neighbours for a pair."""
        heads = self.heads.get(name.rpartition(".")[2])
        if self.architecture != "llama" or heads is None:
            return array
        halves = array.reshape(heads, 2, -1, array.shape[1])
        return halves.swapaxes(1, 2).reshape(array.shape)


def _of_file(reader: Any) -> _About:
    architecture = str(reader.fields["general.architecture"].contents())

    def number(key: str) -> int:
        return int(reader.fields[f"{architecture}.{key}"].contents())

    heads = {"attn_q": number("attention.head_count"), "attn_k": number("attention.head_count_kv")}
    return _About(architecture, number("block_count"), heads)
