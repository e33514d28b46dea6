"""Settings for all tests."""

import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# As many processes as processors run tests. Threads of linear algebra in each would wait for each other's.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# pytest-xdist gives its processes 80: what is printed would be folded otherwise than without it.
os.environ.pop("COLUMNS", None)

pytest_plugins = ["browser", "command_line"]

# No test writes references into the user's own store.
os.environ["JUDGESMITH_REFERENCES"] = str(
    Path(tempfile.mkdtemp(prefix="judgesmith-")) / "references.sqlite"
)

# Tests send Ctrl-C, which shells have what runs in the background ignore.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Timings are measured in benchmarks, never asserted in tests: a busy machine is no failure.
settings.register_profile(
    "judgesmith", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("judgesmith")


@pytest.fixture(autouse=True, scope="module")
def _own_references(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the references of scripted models, which share a name, to the tests of one file."""
    path = tmp_path_factory.mktemp("references") / "references.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGESMITH_REFERENCES", str(path))
        yield


def pytest_collection_finish() -> None:
    """Leave modules and collected tests out of garbage collections, which would look through them again and again.

    What tests leave to be found is little; looking for it after each 700 objects took a tenth of their time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 20)


#: Fixtures that start processes, and modules all of whose tests do, install, train or wait.
PROCESSES = {"spawn", "browser"}
WHOLE = {
    "test_contributing",
    "test_packaging",
    "test_pytest_plugin",
    "test_shadowing",
    "test_training",
    "test_tutorials",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` leaves out what is marked slow."""
    for item in items:
        if (
            PROCESSES & set(getattr(item, "fixturenames", ()))
            or item.path.stem in WHOLE
        ):
            item.add_marker(pytest.mark.slow)
