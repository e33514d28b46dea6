"""Origin of a request to a server on this machine.

Pages of other sites, which the user's own browser shows, must not use it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

#: How a server that listens on this machine alone is addressed.
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
#: A name or an address, perhaps with a port.
WELL_FORMED = re.compile(r"(?:\[[0-9a-f:.]+\]|[^\s:/?#@\[\]]*)(?::[0-9]{0,5})?")


def foreign(
    headers: Iterable[tuple[bytes, bytes]], hosts: Container[str], *, page: bool = False
) -> tuple[int, str] | None:
    """Return the HTTP status and message to refuse a foreign request with; None for an allowed one.

    A request is foreign if its `Host` is not in `hosts` (a stranger's DNS points it here), or if it comes from a page
    of another origin or site. page: the request is for a page, to which another site may link.
    """
    every = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in headers
    ]
    sent = dict(every)
    named = [value.lower() for name, value in every if name == "host"]
    if len(named) == 1 and not WELL_FORMED.fullmatch(named[0]):
        return 400, "the header `Host` is no host with a port"
    if len(named) != 1 or named[0] not in hosts:
        return (
            421,
            "this server answers to the address that the command printed, and to no other",
        )
    schemes = ["http"]
    if not named[0].startswith(LOOPBACK):
        schemes.append("https")  # by a proxy
    if "origin" in sent and sent["origin"].lower() not in [
        f"{scheme}://{named[0]}" for scheme in schemes
    ]:
        return 403, "requests of other origins are refused"
    if not page and sent.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return 403, "requests of other sites are refused"
    return None
