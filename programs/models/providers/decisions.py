"""Decision models: `decision:NAME` on a server, `zeroshot:NAME` in this process."""

from __future__ import annotations

import os

from judgesmith.programs.models.connection import Connection
from judgesmith.programs.models.provider import Provider, Reached, providers
from judgesmith.programs.models.reaching import checked_address


@providers.register
class Decision(Provider):
    """Models that answer typed questions, on a server."""

    name = "decision:"
    about = "Models that answer typed questions on a server (--method decisions)."
    probed = False

    @classmethod
    def open(cls, name: str, connection: Connection) -> Reached:
        """Open a model of the server that the connection or the environment names."""
        from judgesmith.programs.models.decisions import KEY, Served

        model = cls.model_of(name)
        place = _place(connection)
        key = connection.api_key or os.environ.get(KEY, "")
        return Reached(
            name=name,
            transport=Served(model, place, key, connection.timeout),
            identity=place,
        )


@providers.register
class ZeroShotClassifier(Provider):
    """Classifiers that answer typed questions in this process."""

    name = "zeroshot:"
    about = "Zero-shot classifiers of transformers (--method decisions)."
    probed = False

    @classmethod
    def open(cls, name: str, connection: Connection) -> Reached:
        """Open a classifier."""
        from judgesmith.programs.models.decisions import ZeroShot

        return Reached(
            name=name,
            transport=ZeroShot(cls.model_of(name)),
            identity=_place(connection),
            kept=False,  # nothing tells whether the weights of a name are still the same
        )


def _place(connection: Connection) -> str:
    """Return the server's address; "" where none is given. Raises OptionError for what is no address."""
    from judgesmith.programs.models.decisions import ADDRESS

    base = connection.api_base or os.environ.get(ADDRESS, "")
    return checked_address("--api-base", base) if base else ""
