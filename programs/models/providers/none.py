"""No model, for judges that need none."""

from __future__ import annotations

from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.connection import Connection
from judgesmith.programs.models.provider import (
    NO_MODEL,
    Provider,
    Reached,
    providers,
)
from judgesmith.programs.models.transport import Request, Unanswered


class Nobody:
    """The transport of `none`."""

    async def send(self, request: Request) -> Reply:
        """Refuse the request."""
        raise Unanswered(
            "this judge was compiled without a model, and something asks one",
            again=False,
        )


@providers.register
class NoModel(Provider):
    """The model of a judge that needs none."""

    name = NO_MODEL
    about = "No model, for judges that need none."
    probed = False
    free = True
    absent = True
    listed = ""

    @classmethod
    def open(cls, name: str, connection: Connection) -> Reached:
        """Return a model that refuses every request."""
        return Reached(
            name=name,
            transport=Nobody(),
            identity="",
            kept=False,
        )
