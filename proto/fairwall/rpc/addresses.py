"""The form "host:port" of addresses, and the proxy of the environment before an address."""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import urlsplit

PORT_MAX = 65535

_EVERYWHERE = "0.0.0.0"  # noqa: S104 - what to write, and not where anything listens
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
_SPARED = ("no_grpc_proxy", "no_proxy")
"""Environment variables in the order in which gRPC reads them; the first that is set counts."""


def mistake(address: str) -> str:
    """Return the end of an error for an address that is not "host:port", with a correction; empty if it is valid."""
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
    """Raise ValueError for an address that is not "host:port"."""
    if wrong := mistake(address):
        raise ValueError(f"{address!r} is not host:port{wrong}")


def is_loopback(address: str) -> bool:
    """Return whether a "host:port" is this machine's own, to which there is no proxy."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def proxy_of(address: str) -> str:
    """Return the proxy that gRPC uses for a "host:port", without a password; empty if there is none."""
    name = next((each for each in _PROXIES if os.environ.get(each)), "")
    host = address.rpartition(":")[0].strip("[]")
    spared = next(filter(None, map(os.environ.get, _SPARED)), "").split(",")
    if not name or is_loopback(address) or any(each.strip() and host.endswith(each.strip()) for each in spared):
        return ""
    return f"{name} = {urlsplit(os.environ[name]).netloc.rpartition('@')[2]}"
