"""Find the way to a server: the proxies of the environment, and none for this machine."""

from __future__ import annotations

import re
import ssl
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from judgesmith.errors import ModelError

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
