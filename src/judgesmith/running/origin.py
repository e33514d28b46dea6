"""Where a request to a server on this machine comes from: pages of other sites, which the user's own browser shows,
must not use it."""

from __future__ import annotations

from collections.abc import Container, Iterable

#: How a server that listens on this machine alone is addressed.
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def foreign(headers: Iterable[tuple[bytes, bytes]], hosts: Container[str], *, page: bool = False) -> str | None:
    """What is foreign about a request: its `Host` is none of `hosts` (a name that a stranger's DNS points here), or it
    comes from a page of another origin or site; None for one of a program or of the server's own page. page: a page
    itself is asked for, to which another site may link."""
    known: dict[str, str] = {}
    for name, value in headers:
        if name == b"host" and "host" in known:
            return "host"
        known[name.decode("latin-1")] = value.decode("latin-1")
    host = known.get("host", "").lower()
    if host not in hosts:
        return "host"
    schemes = ("http",) if host.startswith(LOOPBACK) else ("http", "https")  # the latter by a proxy
    if "origin" in known and known["origin"].lower() not in [f"{scheme}://{host}" for scheme in schemes]:
        return "origin"
    return None if page or known.get("sec-fetch-site", "none") in ("same-origin", "none") else "site"


#: The HTTP status and the message for each kind of foreign request.
REFUSED = {
    "host": (421, "this server answers to the address that the command printed, and to no other"),
    "origin": (403, "requests of other origins are refused"),
    "site": (403, "requests of other sites are refused"),
}
