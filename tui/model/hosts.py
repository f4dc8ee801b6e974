"""Host names."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address or a ``localhost`` name (RFC 6761)."""
    name = host.removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
