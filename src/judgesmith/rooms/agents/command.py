"""`judgesmith mcp`: serve the main commands as tools of an agent."""

from __future__ import annotations

from typing import ClassVar

from judgesmith.cli.commands import Command


class Mcp(Command):
    """Offer check, compare, compile, score and report to an agent, by the Model Context Protocol on stdin and stdout.

    For agents that have no command line; one that has reads SKILL.md. The agent starts the server by itself: give it
    this command. Tools read and write files as you do, from the folder that the server was started in.
    """

    example: ClassVar[str] = "judgesmith mcp"

    def run(self) -> None:
        """Answer until stdin ends."""
        from judgesmith.rooms.agents.tools import server

        server().run("stdio")
