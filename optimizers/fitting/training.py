"""The training rows of a compile run with the tools that a judge's refiners may use on them."""

from __future__ import annotations

from dataclasses import replace

from ...programs.judge import Judge
from ...programs.readings.head import Readings
from ...programs.refining import HeadFit, Refinable, Refinement, Vector
from .readings import fit_head
from .weights import Rows, least_squares_weights, ridge_weights, search_weights


class Training(Rows):
    """See `programs.refining.TrainingRows`."""

    __slots__ = ()

    search_weights = search_weights
    ridge_weights = ridge_weights
    least_squares_weights = least_squares_weights

    def fit_head(self, table: Readings, human: Vector) -> HeadFit:
        return fit_head(table, human, seed=self.seed)


def refine(program: Judge, training: Training) -> list[Refinement]:
    """Run every refiner of the judge, each on the scores that the one before left; empty for judges without any."""
    done: list[Refinement] = []
    for refiner in program.refiners() if isinstance(program, Refinable) else ():
        done.append(refiner(training))
        training = replace(training, percents=done[-1].percents)
    return done
