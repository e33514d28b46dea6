"""Logs of Inspect in its own format."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

from judgesmith.datasets.bounds import refuse_unpacked
from judgesmith.datasets.exports.inspect_logs import Inspect
from judgesmith.datasets.formats import Format, formats
from judgesmith.datasets.tables import Record
from judgesmith.errors import LabelsError


@formats.register
class RunLog(Format):
    """A packed folder of samples."""

    name = "eval"
    about = "logs of Inspect"
    suffixes = (".eval",)

    def records(self, path: Path, notes: list[str]) -> Iterator[Record]:
        try:
            with zipfile.ZipFile(path) as log:
                for name in sorted(log.namelist()):
                    if not name.startswith("samples/"):
                        continue
                    part = log.getinfo(name)
                    refuse_unpacked(path.name, part.compress_size, part.file_size)
                    with log.open(name) as opened:
                        sample = json.load(io.TextIOWrapper(opened, encoding="utf-8"))
                    yield Inspect().row_of(sample, f"{path.name}, {name}")
        except (zipfile.BadZipFile, NotImplementedError, ValueError, KeyError) as error:
            raise LabelsError(
                f"{path.name}: this log of Inspect cannot be read ({error}); write it as JSON: "
                "inspect log convert --to json"
            ) from None
