"""What "host:port" means, and which proxy of the environment stands before it."""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import urlsplit

PORT_MAX = 65535

_EVERYWHERE = "0.0.0.0"  # noqa: S104 - what to write, and not where anything listens
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
_SPARED = ("no_grpc_proxy", "no_proxy")
"""As gRPC looks for them, the first that is there."""


def mistake(address: str) -> str:
    """Say what to write instead of what is not "host:port", to go behind those words; empty where it is."""
    rest = address.rpartition("://")[2]
    host, _, port = rest.rpartition(":")
    if not (host or rest.startswith(":")) or not (port.isascii() and port.isdecimal() and int(port) <= PORT_MAX):
        return ", such as 127.0.0.1:7443"
    if host in ("", "*"):
        return f": write {_EVERYWHERE}:{port} for all of this machine's addresses"
    if ":" in host.strip("[]") and not (host[0] == "[" and host[-1] == "]"):
        return f", and one of IPv6 in brackets: write [{host.strip('[]')}]:{port}"
    return f": write {rest}" if rest != address else ""


def require(address: str) -> None:
    """Refuse, by ValueError, what is not "host:port"."""
    if wrong := mistake(address):
        raise ValueError(f"{address!r} is not host:port{wrong}")


def is_loopback(address: str) -> bool:
    """Whether a "host:port" is this machine's own, to which there is no proxy."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def proxy_of(address: str) -> str:
    """Name the proxy that gRPC takes to a "host:port", without a password; empty where there is none."""
    name = next((each for each in _PROXIES if os.environ.get(each)), "")
    host = address.rpartition(":")[0].strip("[]")
    spared = next(filter(None, map(os.environ.get, _SPARED)), "").split(",")
    if not name or is_loopback(address) or any(each.strip() and host.endswith(each.strip()) for each in spared):
        return ""
    return f"{name} = {urlsplit(os.environ[name]).netloc.rpartition('@')[2]}"
