"""Metrics, as judges that call no language model, and their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from judgesmith import parts
from judgesmith.errors import OptionError
from judgesmith.programs.registry import metrics
from judgesmith.signatures.values import Verdict

PREFIX = "metric/"


class Metric:
    """Base of all metrics: judges with `score` and `score_many` that call no language model.

    A subclass registers with `@metrics.register` and declares itself.

    Attributes: name, about, paper; Options and `chosen`, its options; extra, the extra of judgesmith that it needs, ""
    for none; description, what it is in one line.
    """

    name: ClassVar[str] = ""
    about: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    aliases: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = ""

    class Options(parts.Options):
        """None."""

    def __init__(self, **options: Any) -> None:
        self.chosen = parts.read_options(
            type(self).Options, options, f"{PREFIX}{self.name}"
        )

    @property
    def description(self) -> str:
        """Return the metric's description."""
        return self.about

    def score(
        self,
        output: str,
        reference: str | Sequence[str] | None = None,
        *,
        source: str = "",
        context: str | None = None,
    ) -> Verdict:
        """Score one output. `context` is accepted as by a judge, and ignored."""
        row = {"output": output, "reference": reference, "source": source}
        return next(iter(self.score_many([row])))

    def score_many(self, rows: Iterable[Any]) -> Iterator[Verdict]:
        """Yield one verdict per row, in order.

        Args:
            rows: Mappings or objects with output and reference (or references) or source.

        Raises:
            MissingExtraError: For a missing package.
            OptionError: For a row without a text `output`.
        """
        raise NotImplementedError


# By name -------------------------------------------------------------------------------------------------------------


def reference_metric(name: str) -> Metric:
    """Return a metric by its name, with or without `metric/`, in any case.

    Options follow a colon: the first by its value alone, others as NAME=VALUE (`bertscore:roberta-large,of=recall`).

    Raises:
        OptionError: For an unknown name or option.
    """
    plain = name.removeprefix(PREFIX)
    kind, colon, value = plain.partition(":")
    by_name = {one.casefold(): part for one, part in metrics.parts().items()}
    part: type[Metric] | None = by_name.get(kind.casefold())
    if part is None or (colon and not part.Options.model_fields):
        names = ", ".join(PREFIX + one for one in metrics.names())
        raise OptionError(f"there is no metric {PREFIX}{plain}; there are {names}")
    if not colon:
        return part()
    fields = part.Options.model_fields
    first = next(iter(fields))
    if not value.strip():
        raise OptionError(
            f"{PREFIX}{plain} names no {first}; write {PREFIX}{kind}:{first.upper()}"
        )
    chosen: dict[str, Any] = {}
    for text in _OPTION.split(value):
        option, equals, stated = (piece.strip() for piece in text.partition("="))
        if not equals or (option not in fields and not chosen):
            option = first
            stated = text.strip()
        if option in fields:
            chosen[option] = parts.from_text(fields[option], stated)
        else:
            chosen[option] = stated
    return part(**chosen)


#: The comma before the next NAME=VALUE.
_OPTION = re.compile(r",(?=\s*[a-z_]+\s*=)")


def cell(row: Any, name: str) -> Any:
    """Return a row's text by its name, for mappings and objects; None if it has none."""
    return row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)


def output_of(row: Any) -> str:
    """Return the judged text.

    Raises:
        OptionError: For a row without one.
    """
    output = cell(row, "output")
    if not isinstance(output, str):
        raise OptionError(
            f"a row to be judged needs a text 'output'; got {type(output).__name__}"
        )
    return output
