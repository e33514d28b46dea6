"""The processes that train together, one a graphics card: started by `accelerate launch`, else there is one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any


class Processes:
    """What each process has to know of the others. main: whether this one writes files and measures.

    The low-rank weights are few, so that every process keeps all of them and their gradients are summed.
    """

    def __init__(self) -> None:
        import torch  # type: ignore[import-not-found,unused-ignore]
        from accelerate import PartialState  # type: ignore[import-not-found,import-untyped,unused-ignore]

        # Without a graphics card accelerate runs each process as if it were alone, unless processors are asked for.
        self._state = PartialState(cpu="LOCAL_RANK" in os.environ and not torch.cuda.is_available())
        self.main: bool = self._state.is_main_process
        self.rank: int = self._state.process_index
        self.count: int = self._state.num_processes
        self.device: Any = self._state.device

    def own(self, rows: list[int]) -> list[int]:
        """The rows of a step that this process computes."""
        return rows[self.rank :: self.count]

    def sum(self, tensors: Iterable[Any]) -> None:
        """Replace tensors by their sums over all processes."""
        if self.count > 1:
            from torch.distributed import all_reduce  # type: ignore[import-not-found,unused-ignore]

            for tensor in tensors:
                all_reduce(tensor)

    def told(self, value: Any) -> Any:
        """The value that the main process has."""
        if self.count == 1:
            return value
        from accelerate.utils import broadcast_object_list  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return broadcast_object_list([value])[0]
