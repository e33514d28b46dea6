"""The contract of perturbations over all that are registered."""

import pytest

from judgesmith.datasets.perturbations.registry import PERTURBATIONS, Perturbation
from judgesmith.testing import PerturbationContract


class TestEveryPerturbation(PerturbationContract):
    @pytest.fixture(params=PERTURBATIONS)
    def perturbation(self, request: pytest.FixtureRequest) -> Perturbation:
        return PERTURBATIONS[request.param]
