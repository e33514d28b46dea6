"""A GGUF file's settings and tensors, read without llama.cpp or torch. Extra: `local`.

Matrices come as bytes in groups of columns with one scale each. Files in 5 or 8 bits hold them in groups of 32,
and nothing is lost then; all else is rounded, to 1/254 of a group's largest weight.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from judgesmith.errors import ModelError
from judgesmith.extras import from_extra
from judgesmith.programs.readings.reader import Floats

#: Columns that share a scale: as files have them, and more, which takes a quarter less time, since a product of 8-bit
#: numbers adds up whole numbers within a group. Models whose widths do not allow that are small, and other groups
#: moved their results more.
GROUP = 32
LARGER_GROUP = 128
#: Weights that are converted at a time: what a core's cache holds is converted twice as fast.
_AT_ONCE = 1 << 17
#: struct's letters of GGUF's numbers, by their code.
_NUMBERS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
_TEXT = 8
_LIST = 9
#: Types whose blocks are groups already, and bytes of one block. No other types' layouts are known here.
_Q5_0 = 6
_Q8_0 = 8
# settings or tensors of a file, entries of a list
_MOST_NAMED = 1 << 16
_MOST_LISTED = 1 << 24

Bytes = NDArray[np.int8]
Halves = NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class Tensor:
    """The place of a tensor in the file. shape: outermost dimension first. kind: GGUF's code of its type."""

    shape: tuple[int, ...]
    kind: int
    at: int


@dataclass(frozen=True, slots=True)
class Groups:
    """A matrix in groups of columns: whole numbers of rows x groups x columns, and scales of rows x groups x 1."""

    numbers: Bytes
    scales: Halves


class Weights:
    """A GGUF file.

    Args:
        path: The file.
        empty: Makes the arrays of groups.

    Raises:
        ModelError: For a file that cannot be read.
        MissingExtraError: Without `gguf`.
    """

    def __init__(self, path: Path, empty: Callable[..., Any] = np.empty) -> None:
        self._path = path
        self._empty = empty
        self._gguf = _gguf()
        self._mapped: dict[str, NDArray[np.uint8]] = {}
        try:
            with path.open("rb") as file:
                self.settings, self.tensors = _header(file)
        except (OSError, ValueError, struct.error, KeyError, OverflowError) as error:
            raise ModelError(
                f"{path}: not a whole GGUF file ({error!r}); fetch it again"
            ) from error

    def setting(self, name: str, default: Any = None) -> Any:
        """Return a setting under the architecture's name, such as `block_count`."""
        return self.settings.get(
            f"{self.settings.get('general.architecture')}.{name}", default
        )

    def forget(self) -> None:
        """Leave go of the settings that are lists: a vocabulary of 150,000 words takes tens of megabytes."""
        self.settings = {
            name: value
            for name, value in self.settings.items()
            if not isinstance(value, list)
        }

    def check(self) -> None:
        """Raises: ModelError for a file that is cut off, or has tensors of a type that is not known."""
        size = self._path.stat().st_size
        for name, tensor in self.tensors.items():
            rows = math.prod(tensor.shape[:-1])
            if tensor.at + rows * self._row_size(tensor) > size:
                raise ModelError(f"{self._path}: cut off in {name}; fetch it again")

    def floats(self, name: str) -> Floats:
        """Return a whole tensor as floats.

        Raises:
            ModelError: For a type that cannot be read.
        """
        tensor = self._tensor(name)
        return self._plain(tensor, self._raw(name, 0, None)).reshape(tensor.shape)

    def rows(self, name: str, wanted: NDArray[np.int64]) -> Floats:
        """Rows of a matrix as floats, of the given indices and in their shape."""
        tensor = self._tensor(name)
        some, places = np.unique(wanted, return_inverse=True)
        if name not in self._mapped:
            row = self._row_size(tensor)
            self._mapped[name] = np.memmap(
                self._path, np.uint8, "r", tensor.at, (tensor.shape[0], row)
            )
        floats = self._plain(tensor, self._mapped[name][some]).reshape(len(some), -1)
        result: Floats = floats[places.reshape(wanted.shape)]
        return result

    @cached_property
    def group(self) -> int:
        """Return how many columns share a scale.

        Raises:
            ModelError: For a file with a matrix that has no groups of 32.
        """
        matrices = filter(_is_matrix, self.tensors.values())
        widths = [tensor.shape[1] for tensor in matrices]
        for width in widths:
            if width % GROUP:
                raise ModelError(
                    f"{self._path}: a matrix has {width} columns, which is no multiple of {GROUP}"
                )
        larger = math.gcd(LARGER_GROUP, *widths) == LARGER_GROUP
        return LARGER_GROUP if larger else GROUP

    def groups(
        self, name: str, *, threads: int = 1, added: Floats | None = None
    ) -> Groups:
        """Return a matrix in groups of `group` columns.

        Args:
            name: The tensor.
            threads: The number of threads.
            added: Floats that are added first.

        Raises:
            ModelError: For a width that is no multiple of 32.
        """
        tensor = self._tensor(name)
        group = self.group
        rows, width = tensor.shape
        result = Groups(
            self._empty((rows, width // group, group), np.int8),
            self._empty((rows, width // group, 1), np.float16),
        )
        step = max(1, _AT_ONCE // width)

        def convert(first: int) -> None:
            raw = self._raw(name, first, min(step, rows - first))
            if group == GROUP and added is None and tensor.kind in _SPLIT:
                numbers, scales = _SPLIT[tensor.kind](raw)
            else:
                floats = self._plain(tensor, raw).reshape(len(raw), width)
                if added is not None:
                    floats = floats + added[first : first + len(raw)]
                numbers, scales = _rounded(floats, group)
            part = slice(first, first + len(raw))
            result.numbers[part] = numbers.reshape(result.numbers[part].shape)
            result.scales[part] = scales.reshape(result.scales[part].shape)

        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(convert, range(0, rows, step)):
                pass
        return result

    def _tensor(self, name: str) -> Tensor:
        if name not in self.tensors:
            raise ModelError(f"{self._path} has no tensor {name}")
        return self.tensors[name]

    def _raw(self, name: str, first: int, count: int | None) -> NDArray[np.uint8]:
        """Rows of a tensor as they stand in the file. Read and not mapped, so that they take no memory afterwards."""
        tensor = self._tensor(name)
        rows = int(np.prod(tensor.shape[:-1]))
        row = self._row_size(tensor)
        some = rows if count is None else count
        raw = np.fromfile(
            self._path, np.uint8, row * some, offset=tensor.at + row * first
        )
        if len(raw) != row * some:
            raise ModelError(f"{self._path}: cut off in {name}; fetch it again")
        return raw.reshape(some, row)

    def _row_size(self, tensor: Tensor) -> int:
        """Bytes of a row."""
        try:
            block, size = self._gguf.GGML_QUANT_SIZES[
                self._gguf.GGMLQuantizationType(tensor.kind)
            ]
        except (ValueError, KeyError):
            raise ModelError(
                f"{self._path}: tensors of type {tensor.kind} are not known; update gguf"
            ) from None
        return int(tensor.shape[-1] // block * size)

    def _plain(self, tensor: Tensor, raw: NDArray[np.uint8]) -> Floats:
        """Return rows of a tensor as floats, in any shape."""
        if tensor.kind in _SPLIT:
            numbers, scales = _SPLIT[tensor.kind](raw)
            floats: Floats = numbers * scales.astype(np.float32)
            return floats
        kind = self._gguf.GGMLQuantizationType(tensor.kind)
        try:
            result: Floats = self._gguf.dequantize(raw, kind)
        except NotImplementedError:
            raise ModelError(
                f"{self._path}: tensors of type {kind.name} cannot be read; update gguf"
            ) from None
        return result


def _gguf() -> Any:
    return from_extra("local", "reading a GGUF file's weights", "gguf")


# The header ----------------------------------------------------------------------------------------------------------


def _header(file: BinaryIO) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Settings and tensors. The `gguf` package takes seconds for a vocabulary of 150,000 words."""
    magic, version, count, fields = struct.unpack("<4sIQQ", _read(file, 24))
    if magic != b"GGUF" or version not in (2, 3):
        raise ValueError(f"begins with {magic!r}, version {version}")
    if max(count, fields) > _MOST_NAMED:
        raise ValueError(f"{count} tensors, {fields} settings")
    settings = {_text(file): _value(file, _number(file, "I")) for _ in range(fields)}
    described = [_described(file) for _ in range(count)]
    align = int(settings.get("general.alignment", 32))
    start = -(-file.tell() // align) * align
    return settings, {
        name: Tensor(shape, kind, start + at) for name, shape, kind, at in described
    }


def _described(file: BinaryIO) -> tuple[str, tuple[int, ...], int, int]:
    name = _text(file)
    dimensions = _number(file, "I")
    if not 1 <= dimensions <= 4:
        raise ValueError(f"{name} has {dimensions} dimensions")
    shape = struct.unpack(f"<{dimensions}Q", _read(file, 8 * dimensions))
    kind, at = struct.unpack("<IQ", _read(file, 12))
    return name, shape[::-1], kind, at


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _TEXT:
        return _text(file)
    if kind != _LIST:
        return _number(file, _NUMBERS[kind])
    inner = _number(file, "I")
    count = _number(file, "Q")
    if count > _MOST_LISTED:
        raise ValueError(f"a list of {count} entries")
    if inner in (_TEXT, _LIST):
        return [_value(file, inner) for _ in range(count)]
    letter = _NUMBERS[inner]
    return list(
        struct.unpack(
            f"<{count}{letter}", _read(file, count * struct.calcsize(f"<{letter}"))
        )
    )


def _text(file: BinaryIO) -> str:
    return _read(file, _number(file, "Q")).decode("utf-8", "replace")


def _number(file: BinaryIO, letter: str) -> Any:
    return struct.unpack(f"<{letter}", _read(file, struct.calcsize(f"<{letter}")))[0]


def _read(file: BinaryIO, size: int) -> bytes:
    if size > _MOST_LISTED * 8:
        raise ValueError(f"a field of {size} bytes")
    data = file.read(size)
    if len(data) < size:
        raise ValueError("cut off")
    return data


# Groups --------------------------------------------------------------------------------------------------------------


def _is_matrix(tensor: Tensor) -> bool:
    return len(tensor.shape) == 2


def _rounded(floats: Floats, group: int) -> tuple[Bytes, Halves]:
    groups = floats.reshape(-1, group)
    largest = np.maximum(groups.max(axis=1), -groups.min(axis=1))
    scales = _upwards(largest / np.float32(127))
    divisors = scales.astype(np.float32)
    divisors[divisors == 0] = 1
    numbers = groups * (1 / divisors)[:, None]
    np.rint(numbers, out=numbers)
    return numbers.astype(np.int8), scales


def _upwards(floats: Floats) -> Halves:
    """Return floats as halves that are no smaller, so that nothing divided by one is above 127."""
    halves = floats.astype(np.float16)
    smaller = halves < floats
    halves[smaller] = np.nextafter(halves[smaller], np.float16(np.inf))
    return halves


def _of_eight_bits(raw: NDArray[np.uint8]) -> tuple[Bytes, Halves]:
    """A scale, then 32 numbers."""
    blocks = raw.reshape(-1, 34)
    return blocks[:, 2:].view(np.int8), np.ascontiguousarray(blocks[:, :2]).view(
        np.float16
    )


def _of_five_bits(raw: NDArray[np.uint8]) -> tuple[Bytes, Halves]:
    """Return scales and numbers of a block of five bits.

    A block has a scale, the numbers' highest bits, then their lower four: those of the first half in the lower halves
    of the bytes. 16 stands for zero.
    """
    blocks = raw.reshape(-1, 22)
    numbers = np.empty((len(blocks), GROUP), np.uint8)
    np.bitwise_and(blocks[:, 6:], 15, out=numbers[:, : GROUP // 2])
    np.right_shift(blocks[:, 6:], 4, out=numbers[:, GROUP // 2 :])
    numbers |= np.unpackbits(blocks[:, 2:6], axis=1, bitorder="little") << 4
    numbers -= 16
    return numbers.view(np.int8), np.ascontiguousarray(blocks[:, :2]).view(np.float16)


_SPLIT = {_Q5_0: _of_five_bits, _Q8_0: _of_eight_bits}
