"""The judge methods, the readings and the reference metrics that there are, those of other packages included."""

from __future__ import annotations

from typing import Any

from judgesmith.parts import Registry

#: Ways to judge, by `kind`. Subclasses of `programs.method.Method` register themselves.
methods: Registry[type[Any]] = Registry(
    "judge method",
    packages=("judgesmith.programs",),
    group="judgesmith.methods",
    key="kind",
)
#: What is read of a row, by name (`programs.readings.kinds.Reading`).
readings: Registry[type[Any]] = Registry(
    "reading",
    packages=(
        "judgesmith.programs.readings.kinds",
        "judgesmith.programs.readings.facts",
    ),
    group="judgesmith.readings",
)
#: Metrics that compare an output with a text, by name.
metrics: Registry[type[Any]] = Registry(
    "metric", packages=("judgesmith.programs.baselines",), group="judgesmith.metrics"
)
