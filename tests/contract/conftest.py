"""A run's certificates, and real servers and channels on loopback that end with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import grpc
import pytest

from fairwall.rpc import channel, server
from fairwall.rpc.identity import Credentials
from sim.play.keys import mint


@pytest.fixture(scope="session")
def credentials() -> dict[str, Credentials]:
    """Every party's credentials of one run, by party."""
    return mint("run-1")


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Start a server with a party's credentials; its address."""
    with ExitStack() as running:

        def start(register: Callable[[grpc.Server], None], own: Credentials) -> str:
            listening = server.serve(register, own)
            running.callback(listening.stop)
            return listening.address

        yield start


@pytest.fixture
def dial() -> Iterator[Callable[..., grpc.Channel]]:
    """Open a channel to the party that must answer at an address."""
    with ExitStack() as opened:

        def connect(address: str, party: str, own: Credentials) -> grpc.Channel:
            return opened.enter_context(channel.connect(address, party, own))

        yield connect
