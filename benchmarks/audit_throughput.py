"""How fast predictions travel: a large audit, a bare gRPC stream of the same bytes, and a raw socket, in one run.

    python benchmarks/audit_throughput.py [--mib 256] [--rounds 7]

One compliance process and one client on loopback. The bare stream sends the array in chunks of 1 MiB with identity
serialisers over the same mutual TLS to a method that counts bytes, so that what is left is gRPC. The raw socket is a
Unix one without TLS. Rounds are interleaved; the audit computes its answer besides.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray
from short import parsed

from compliance.answers.audit_service import AuditService
from compliance.answers.audits import game_case
from compliance.ledger.accountant import Budget
from compliance.mechanisms import MECHANISMS
from compliance.records.people import Records
from fairwall.client.gaps import Audits, ask
from fairwall.compliance.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from fairwall.rpc import channel, server
from fairwall.rpc.identity import Credentials
from sim.play.keys import mint

PEOPLE = 1 << 15
CHUNK = 1 << 20
DRAIN = "/fairwall.bench.Drain/Drain"


def serve() -> None:
    """Serve one data set, a method that counts bytes, and a socket that does, until stdin closes."""
    asked = json.loads(sys.stdin.readline())
    credentials = Credentials(**asked["credentials"])
    rng = np.random.default_rng(0)
    labels, protected = (rng.integers(0, 2, PEOPLE).astype(np.uint8) for _ in range(2))
    case = game_case(
        "deal", Records(labels, protected, ("sp",)), MECHANISMS["laplace"], Budget(1e9), 0.0, 1 << 20, b"s" * 32
    )
    listening = server.serve(
        lambda grpc_server: add_AuditServiceServicer_to_server(AuditService({"deal": case}), grpc_server), credentials
    )
    bare = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    bare.add_generic_rpc_handlers((_Drain(),))
    port = bare.add_secure_port(
        "127.0.0.1:0",
        grpc.ssl_server_credentials(
            [(credentials.key.encode(), credentials.certificate.encode())], credentials.authority.encode(), True
        ),
    )
    bare.start()
    path = str(Path(asked["folder"]) / "raw")
    raw = socket.socket(socket.AF_UNIX)
    raw.bind(path)
    raw.listen()
    threading.Thread(target=_drain_socket, args=(raw,), daemon=True).start()
    print(json.dumps([listening.address, f"127.0.0.1:{port}", path]), flush=True)
    sys.stdin.readline()


class _Drain(grpc.GenericRpcHandler):
    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        def count(chunks: Iterator[bytes], _: grpc.ServicerContext) -> bytes:
            return str(sum(map(len, chunks))).encode()

        return grpc.stream_unary_rpc_method_handler(count) if handler_call_details.method == DRAIN else None


def _drain_socket(raw: socket.socket) -> None:
    buffer = bytearray(CHUNK)
    while True:
        connection, _ = raw.accept()
        with connection:
            left = int.from_bytes(connection.recv(8), "big")
            while left:
                left -= connection.recv_into(buffer, min(CHUNK, left))
            connection.sendall(b"k")


def chunks_of(predictions: NDArray[np.float64]) -> Iterator[bytes]:
    view = predictions.data.cast("B")
    return (bytes(view[start : start + CHUNK]) for start in range(0, len(view), CHUNK))


def send_raw(path: str, predictions: NDArray[np.float64]) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(predictions.nbytes.to_bytes(8, "big"))
        connection.sendall(predictions.data.cast("B"))
        connection.recv(1)


def main() -> None:
    """Print each way's median throughput, and the audit's share of the others'."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--mib", type=int, default=256, help="the size of an audit, a multiple of the 256 KiB of a model"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parsed(parser, mib=8, rounds=1)
    if asked.serve:
        serve()
        return
    credentials = mint("bench")
    with ExitStack() as running:
        folder = running.enter_context(tempfile.TemporaryDirectory())
        command = [sys.executable, __file__, "--serve"]
        process = running.enter_context(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"credentials": asdict(credentials["compliance"]), "folder": folder}) + "\n")
        process.stdin.flush()
        running.callback(process.stdin.close)
        address, bare_address, path = json.loads(process.stdout.readline())
        own = credentials["developer"]
        audits = Audits(running.enter_context(channel.connect(address, "compliance", own)))
        bare: Any = running.enter_context(channel.connect(bare_address, "compliance", own)).stream_unary(DRAIN)
        numbers = iter(range(asked.rounds + 1))
        ways: dict[str, Callable[[NDArray[np.float64]], object]] = {
            "audit": lambda predictions: ask(audits, "deal", f"round {next(numbers)}", "sp", predictions, 1.0),
            "gRPC stream": lambda predictions: bare(chunks_of(predictions), timeout=600),
            "raw socket": lambda predictions: send_raw(path, predictions),
        }
        rates: dict[str, list[float]] = {way: [] for way in ways}
        predictions = np.random.default_rng(1).random(((asked.mib << 20) // (8 * PEOPLE), PEOPLE))
        for number in range(asked.rounds + 1):
            for way, send in ways.items():
                started = time.perf_counter()
                send(predictions)
                if number:  # the first one warms up
                    rates[way].append(predictions.nbytes / 1e6 / (time.perf_counter() - started))
            print(f"round {number} of {asked.rounds}", file=sys.stderr)
    for way, values in rates.items():
        shares = [ours / theirs for ours, theirs in zip(rates["audit"], values, strict=True)]
        print(
            f"{way:11} median {statistics.median(values):6.0f} MB/s   the audit reaches "
            f"{100 * statistics.median(shares):5.1f} % of it ({100 * min(shares):.0f} to {100 * max(shares):.0f})"
        )


if __name__ == "__main__":
    main()
