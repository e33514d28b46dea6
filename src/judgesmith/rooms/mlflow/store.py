"""MLflow as a place that saved judges come from: its modules, how long it is waited for, and fetching a judge.

MLflow is an extra, imported on first use only. Where its store is, MLflow's own settings say (MLFLOW_TRACKING_URI).
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from judgesmith.errors import ArtifactError, OptionError
from judgesmith.extras import from_extra

#: A registered judge, and one that a run logged.
MODELS = "models:/"
RUNS = "runs:/"
#: Before a run: tries and seconds to a try after which the tracking store counts as not there. MLflow's own are eight
#: tries of two minutes.
CHECK = (1, 5)
#: The same for logging, where there is something to lose.
LOG = (3, 30)


def mlflow_part(part: str, purpose: str) -> Any:
    """Return a module of MLflow. Its usage statistics stay off unless the user's environment says otherwise."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    return from_extra("mlflow", purpose, part)


def check_address() -> None:
    """Check the address of the tracking server.

    Raises:
        OptionError: If it has no scheme, so that MLflow would take it for a folder.
    """
    address = os.environ.get("MLFLOW_TRACKING_URI", "")
    if re.fullmatch(
        r"(?:[\w.-]{2,}|\[[\da-f:]+\]):\d{2,5}(?:/.*)?", address, re.IGNORECASE
    ):
        raise OptionError(
            f"MLFLOW_TRACKING_URI={address}: the address has no scheme; write http://{address}"
        )


@contextmanager
def patience(retries: int, seconds: int) -> Iterator[None]:
    """Silence MLflow (its log, its bars, an address on stdout), and bound its waiting for a server.

    Bounds in the user's environment take precedence.
    """
    bounds = {
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": retries,
        "MLFLOW_HTTP_REQUEST_TIMEOUT": seconds,
    }
    ours = {
        name: str(value) for name, value in bounds.items() if name not in os.environ
    }
    ours |= {
        "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
        "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    }
    before = {name: os.environ.get(name) for name in ours}
    loggers = [logging.getLogger(name) for name in ("mlflow", "alembic", "urllib3")]
    levels = [logger.level for logger in loggers]
    try:
        os.environ.update(ours)
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def short(error: BaseException | str) -> str:
    """Return a foreign message in one line, without the name and password that an address may hold."""
    text = re.sub(r"://[^/@\s]*@", "://", str(error) or type(error).__name__)
    # urllib3 says within urllib3 within requests within MLflow why a request failed; its innermost words suffice.
    head, caused, cause = text.partition(" (Caused by ")
    if caused:
        text = f"{head.split(' failed with exception')[0]} failed: {cause.rsplit(': ', 1)[-1]}".rstrip(
            "'\")"
        )
    text = " ".join(text.split())
    return text if len(text) <= 300 else f"{text[:299]}…"


def stored(path: str | Path) -> str | None:
    """Return the address of a judge in MLflow, None for a file of this machine."""
    text = path.as_posix() if isinstance(path, Path) else path
    return text if text.startswith((MODELS, RUNS)) else None


@contextmanager
def fetched(address: str) -> Iterator[Path]:
    """Fetch the judge.json of `models:/NAME@ALIAS`, `models:/NAME/VERSION` or `runs:/RUN_ID`.

    Only this one file is fetched.

    Raises:
        ArtifactError: If MLflow does not have it.
        MissingExtraError: If MLflow is not installed.
    """
    artifacts = mlflow_part("mlflow.artifacts", address)
    file = address if address.endswith(".json") else f"{address.rstrip('/')}/judge.json"
    with TemporaryDirectory() as folder:
        try:
            with patience(*LOG):
                path = Path(
                    artifacts.download_artifacts(artifact_uri=file, dst_path=folder)
                )
        except Exception as error:  # stores are databases, servers and plugins, each with exceptions of its own
            raise ArtifactError(
                f"{address} cannot be fetched from MLflow ({short(error)})"
            ) from None
        if not path.is_file():
            raise ArtifactError(
                f"{address}: there is no judge.json in it; `compile --register NAME` puts one there"
            )
        yield path
