"""Start one of this project's own game servers by a policy of the kit, without a run around it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc

from fairwall import toml
from fairwall.rpc import identity, process, server


def serve(party: str, register: Callable[[grpc.Server, dict[str, Any]], None]) -> None:
    """Serve the registered services for a policy of the kit, until SIGTERM."""
    parser = argparse.ArgumentParser(description=f"Serve as the {party}.")
    parser.add_argument("--policy", type=Path, required=True)
    path: Path = parser.parse_args().policy
    process.log(party)
    with process.until_told():
        policy = toml.read(path)
        place = policy["deployment"]
        own = identity.load(path.parent / place["credentials"])
        listening = server.serve(lambda grpc_server: register(grpc_server, policy), own, place["listen"])
        print(json.dumps({"address": listening.address}), flush=True)  # noqa: T201
    listening.stop()
