"""Contract suites: what holds for every part of a kind, for those of other packages, too.

    from judgesmith.testing import JudgeContract

    class TestMine(JudgeContract):
        part = MyJudge

Beside the suites stand what they run on: a language model that follows a script (`scripted`), and one that answers by a
function (`fake`).
"""

from judgesmith.errors import MissingExtraError

try:
    import pytest
except ImportError:
    raise MissingExtraError(
        "judgesmith.testing needs pytest; install it with: pip install pytest"
    ) from None

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{suite}"
        for suite in (
            "benchmarks",
            "judges",
            "metrics",
            "objectives",
            "optimizers",
            "perturbations",
            "screens",
        )
    )
)

from judgesmith.testing.benchmarks import BenchmarkContract  # noqa: E402
from judgesmith.testing.judges import JudgeContract  # noqa: E402
from judgesmith.testing.metrics import MetricContract  # noqa: E402
from judgesmith.testing.objectives import ObjectiveContract  # noqa: E402
from judgesmith.testing.optimizers import OptimizerContract  # noqa: E402
from judgesmith.testing.perturbations import PerturbationContract  # noqa: E402
from judgesmith.testing.screens import ScreenContract  # noqa: E402

__all__ = [
    "BenchmarkContract",
    "JudgeContract",
    "MetricContract",
    "ObjectiveContract",
    "OptimizerContract",
    "PerturbationContract",
    "ScreenContract",
]
