"""Which rooms' tests a change asks for."""

import pytest
from changed import folders_for

pytestmark = pytest.mark.text
ROOMS = {
    "adapters",
    "agents",
    "discerning",
    "engines",
    "injections",
    "labelling",
    "mlflow",
} | {
    "serving",
    "sync",
    "training",
    "watching",
}


@pytest.mark.parametrize(
    ("file", "rooms"),
    [
        ("docs/pages/start.md", set()),
        ("datasets/perturbations/attacks.py", {"discerning", "training"}),
        ("src/judgesmith/rooms/serving/app.py", {"serving"}),
        ("tests/rooms/mlflow/test_mlflow_logging.py", {"mlflow"}),
        ("tests/support/pages.py", ROOMS),
        ("pyproject.toml", ROOMS),
        ("signatures/values.py", ROOMS),
    ],
)
def test_a_change_asks_for_the_rooms_that_it_reaches(
    file: str, rooms: set[str]
) -> None:
    named = folders_for([file])
    assert {name.split("/")[2] for name in named if "/rooms/" in name} == rooms
    assert {"tests/scoring", "tests/agreement", "tests/test_rows.py"} <= set(named)
    assert not {"tests/support", "tests/conftest.py"} & set(named)
