"""What recording costs: one large audit with record = "none", "digest" and "full", in interleaved rounds.

    python benchmarks/recording.py [--mib 64] [--rounds 5]

A compliance process and a client on loopback, as in a game, both recording. The predictions are new random numbers
every time, so nothing that was stored before is met again and nothing compresses.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import numpy as np
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
from fairwall.rpc.recorder import MODES, TranscriptRecorder
from sim.play.keys import mint

PEOPLE = 1 << 15


def recorder(folder: Path, party: str, mode: str) -> TranscriptRecorder | None:
    return None if mode == "none" else TranscriptRecorder(folder / mode / f"{party}.bin", "bench", party, "", mode)


def serve() -> None:
    """Serve one data set until stdin closes."""
    asked = json.loads(sys.stdin.readline())
    rng = np.random.default_rng(0)
    labels, protected = (rng.integers(0, 2, PEOPLE).astype(np.uint8) for _ in range(2))
    records = Records(labels, protected, ("sp",))
    case = game_case("deal", records, MECHANISMS["laplace"], Budget(1e9), 0.0, 1 << 20, b"s" * 32)
    listening = server.serve(
        lambda grpc_server: add_AuditServiceServicer_to_server(AuditService({"deal": case}), grpc_server),
        Credentials(**asked["credentials"]),
        recorder=recorder(Path(asked["folder"]), "compliance", asked["mode"]),
    )
    print(listening.address, flush=True)
    sys.stdin.readline()


def main() -> None:
    """Print each way's median throughput and what it costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--mib", type=int, default=64, help="the size of an audit, a multiple of the 256 KiB of a model"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parsed(parser, mib=4, rounds=1)
    if asked.serve:
        serve()
        return
    credentials = mint("bench")
    rng = np.random.default_rng(1)
    rates: dict[str, list[float]] = {mode: [] for mode in reversed(MODES)}
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        services = {}
        for mode in rates:
            command = [sys.executable, __file__, "--serve"]
            process = running.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            assert process.stdin is not None
            assert process.stdout is not None
            told = {"credentials": asdict(credentials["compliance"]), "folder": str(folder), "mode": mode}
            process.stdin.write(json.dumps(told) + "\n")
            process.stdin.flush()
            address = process.stdout.readline().strip()
            running.callback(process.stdin.close)
            own = recorder(folder, "developer", mode)
            connection = channel.connect(address, "compliance", credentials["developer"], own)
            services[mode] = Audits(running.enter_context(connection))
        for number in range(asked.rounds + 1):
            for mode in (*rates, *reversed(rates))[number % 2 * len(rates) :][: len(rates)]:
                predictions = rng.random(((asked.mib << 20) // (8 * PEOPLE), PEOPLE))
                started = time.perf_counter()
                ask(services[mode], "deal", f"round {number}", "sp", predictions, 1.0)
                if number:  # the first one warms up
                    rates[mode].append(predictions.nbytes / 1e6 / (time.perf_counter() - started))
            print(f"round {number} of {asked.rounds}", file=sys.stderr)
        sizes = {mode: sum(path.stat().st_size for path in (folder / mode).glob("*")) for mode in rates}
    plain = statistics.median(rates["none"])
    for mode, values in rates.items():
        # Round by round: what else the machine does at the time slows all of them alike.
        costs = [1 - value / base for value, base in zip(values, rates["none"], strict=True)]
        rate, cost = statistics.median(values), statistics.median(costs)
        print(
            f"{mode:7} median {rate:6.0f} MB/s   costs {100 * cost:5.1f} % (medians: {100 * (1 - rate / plain):5.1f} %)"
            f"   {sizes[mode] / 1e6 / (asked.rounds + 1):6.1f} MB written an audit"
        )


if __name__ == "__main__":
    main()
