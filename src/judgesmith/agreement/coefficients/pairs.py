"""Pairwise accuracies of WMT. How they are computed: `meta.accuracy`."""

from __future__ import annotations

from judgesmith.agreement.coefficients import Pairs, coefficients


@coefficients.register
class AccEq(Pairs):
    """Pairwise accuracy with ties, acc*_eq."""

    name = "acc_eq"
    title = "acc_eq"
    about = "WMT's pairwise accuracy with ties, its epsilon chosen on the same rows."
    levels = ("pooled", "sample", "system")
    brings = ("acc_eq_cross",)


@coefficients.register
class AccEqCross(Pairs):
    """Pairwise accuracy with ties, cross-fitted. Of systems there is no epsilon to choose."""

    name = "acc_eq_cross"
    title = "acc_eq cross-fitted"
    about = "The same, its epsilon chosen on other documents."
    levels = ("pooled", "sample")
    crossed = True


@coefficients.register
class AccSoft(Pairs):
    """Soft pairwise accuracy of systems."""

    name = "acc_soft"
    title = "soft pairwise acc."
    about = "WMT's soft pairwise accuracy of systems."
    levels = ("system",)
    of_systems = True
