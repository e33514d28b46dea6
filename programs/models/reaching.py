"""Find the way to a server: the proxies of the environment, and none for this machine."""

from __future__ import annotations

import re
import ssl
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from judgesmith.errors import ModelError, OptionError

_UNTRUSTED = re.compile(r"CERTIFICATE_VERIFY_FAILED|certificate verify failed", re.I)


def is_loopback(address: str) -> bool:
    """Return True for an address on this machine, which no proxy can reach."""
    host = urlsplit(address).hostname or ""
    return (
        host in ("::1", "localhost") or re.fullmatch(r"127(\.\d+){3}", host) is not None
    )


def proxy_for(address: str) -> str | None:
    """Return the proxy that the environment names for an address (`HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`); or None.

    Raises:
        ModelError: For a proxy that does not speak HTTP.
    """
    parts = urlsplit(address)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if (
        not proxy
        or is_loopback(address)
        or proxy_bypass(parts.netloc.rpartition("@")[2])
    ):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    scheme = urlsplit(proxy).scheme
    if scheme not in ("http", "https"):
        raise ModelError(
            f"the environment names a proxy of the kind {scheme}://, which cannot be used here; name one by http://, "
            f"or take {parts.hostname} out of it with NO_PROXY"
        )
    return proxy


def check_trusted(label: str, error: BaseException) -> None:
    """Check that a failed connection did not fail for a certificate, which no later try changes.

    Raises:
        ModelError: If the server's certificate is not trusted.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError) or _UNTRUSTED.search(
            str(cause)
        ):
            why = getattr(cause, "verify_message", "") or "it cannot be verified"
            raise ModelError(
                f"{label}: the server's certificate is not trusted ({why}); name the file of the authority that signed "
                "it in SSL_CERT_FILE, and check the host in the address"
            ) from None
        cause = cause.__cause__ or cause.__context__


def checked_address(where: str, base: str) -> str:
    """Return an address in its usual form.

    Raises:
        OptionError: It is no address, or holds what would be sent in place of the key: a name, a password, or a query
            such as `?api_key=…`. None of these is repeated.
    """
    base = base.strip()
    before, at, host = base.rpartition("@")
    if at and "/" in before:
        raise OptionError(
            f"{where} holds a user name or a password (before @{host.partition('/')[0]}); leave it out, give the key "
            "by its environment variable, and put other credentials into a proxy"
        )
    try:
        parts = urlsplit(base)
        usable = (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
        )
    except ValueError:  # a port that is not a number, half an IPv6 address
        usable = False
    if not usable or not base.isprintable() or " " in base:
        raise OptionError(
            f"{where} {base!r} is not an http(s) address; for example http://127.0.0.1:8000/v1"
        )
    for sign, name in (("?", "a query"), ("#", "a fragment")):
        if sign in base:
            raise OptionError(
                f"{where} {base.partition(sign)[0]}{sign}… has {name}, to which no path can be added; leave it out, "
                "and give a key by its environment variable"
            )
    return base.rstrip("/")
