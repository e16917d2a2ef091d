"""What a collector is told of a deployment, by real OTLP over HTTP: calls, budgets, readiness, and nothing of A."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairwall.client import AuditRefused
from tests.support.loans_deployment import CHARGE, PEOPLE, PLENTY, Deployment, ask

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="needs the extra telemetry")

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

AUDIT = "fairwall.compliance.v1.AuditService/Audit"


@dataclass
class Collector:
    """Takes what is sent, and keeps it."""

    url: str = ""
    metrics: list[ExportMetricsServiceRequest] = field(default_factory=list)
    traces: list[ExportTraceServiceRequest] = field(default_factory=list)

    def points(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        """The last message's metrics: by name, attributes and values (of a histogram how many there were)."""
        found: dict[str, list[tuple[dict[str, str], float]]] = {}
        for scope in (scope for resource in self.metrics[-1].resource_metrics for scope in resource.scope_metrics):
            for metric in scope.metrics:
                data = metric.gauge if metric.HasField("gauge") else metric.histogram
                found[metric.name] = [
                    (
                        {each.key: each.value.string_value for each in point.attributes},
                        point.count if metric.HasField("histogram") else point.as_double or point.as_int,
                    )
                    for point in data.data_points
                ]
        return found

    def spans(self) -> list[tuple[str, dict[str, Any]]]:
        """Every span: its name, and its attributes."""
        return [
            (
                span.name,
                {each.key: (each.value.string_value or each.value.double_value) for each in span.attributes},
            )
            for message in self.traces
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@pytest.fixture
def collector() -> Iterator[Collector]:
    kept = Collector()

    class Taker(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/metrics":
                kept.metrics.append(ExportMetricsServiceRequest.FromString(data))
            else:
                kept.traces.append(ExportTraceServiceRequest.FromString(data))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Taker) as server:
        kept.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield kept
        server.shutdown()
        thread.join()


def told(deployment: Deployment, url: str) -> Deployment:
    policy = deployment.folder / "policy.toml"
    policy.write_text(policy.read_text().replace("[data]", f'telemetry = "{url}"\n[data]'))
    return deployment


def serve_and_ask(deployment: Deployment) -> None:
    """Ask, repeat, be refused, and end the service, which sends what is left."""
    with deployment.served() as process:
        with deployment.client("alice") as alice, deployment.client("bob") as bob:
            ask(alice, "one")
            ask(alice, "one")
            ask(bob, "two")
            with pytest.raises(AuditRefused):
                bob.ask(np.ones(PEOPLE + 1), "sp", CHARGE, request_id="three")
        process.terminate()
        assert process.wait(300) == 0


def test_a_collector_is_told_of_calls_and_budgets(tmp_path: Path, collector: Collector) -> None:
    deployment = told(Deployment(tmp_path), collector.url)
    serve_and_ask(deployment)
    points = collector.points()
    alice, bob = ({"caller": f"developer/{name}", "dataset": "loans"} for name in ("alice", "bob"))
    answered, refused = {"outcome": "answered"}, {"outcome": "refused", "reason": "PREDICTIONS_SHAPE"}
    assert in_order(points["fairwall.call.duration"]) == in_order(
        [
            ({"method": AUDIT, **alice, **answered}, 2),
            ({"method": AUDIT, **bob, **answered}, 1),
            ({"method": AUDIT, **bob, **refused}, 1),
        ]
    )
    charged, left = (
        {point["developer"]: value for point, value in points[f"fairwall.epsilon.{name}"]}
        for name in ("charged", "left")
    )
    assert charged == {"": 2 * CHARGE, "alice": CHARGE, "bob": CHARGE}
    assert left == {"": PLENTY - 2 * CHARGE, "alice": PLENTY - 2 * CHARGE, "bob": PLENTY - 2 * CHARGE}
    assert points["fairwall.ready"] == [({}, 1)]
    ((_, seconds),) = points["fairwall.ledger.write"]
    assert 0 < seconds < 10
    assert in_order(collector.spans()) == in_order(
        [
            (AUDIT, {f"fairwall.{key}": value for key, value in facts.items()})
            for facts in (
                {**alice, **answered, "request": "one", "cost": CHARGE},
                {**alice, **answered, "request": "one", "cost": 0.0},
                {**bob, **answered, "request": "two", "cost": CHARGE},
                {**bob, **refused, "request": "three"},
            )
        ]
    )


def in_order(found: list[Any]) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in found)


TELLS_OF_GROUPS = """
from compliance.__main__ import main
from compliance.answers.audits import AuditCase
from fairwall.rpc import journal
settle = AuditCase.answer
def leaking(self, *arguments):
    journal.note(request=str(self.records.smallest_group("sp")))
    return settle(self, *arguments)
AuditCase.answer = leaking
from compliance.ledger import Ledger
Ledger.settle.__globals__["journal"] = type("Silent", (), {"note": staticmethod(lambda **_: None)})
main()
"""


def collected(folder: Path, collector: Collector, rows: list[str], service: str) -> tuple[Any, list[str]]:
    """All that the collector is told of people in such groups, but for times."""
    deployment = told(Deployment(folder), collector.url)
    (folder / "people.csv").write_text("\n".join(["group,repaid", *rows]) + "\n")
    if service:
        deployment.service = ("-c", service)
    collector.traces.clear()
    serve_and_ask(deployment)
    points = collector.points()
    points.pop("fairwall.ledger.write")
    return {name: in_order(each) for name, each in points.items()}, in_order(collector.spans())


@pytest.mark.check
@pytest.mark.parametrize("service", ["", TELLS_OF_GROUPS], ids=["ours", "one that tells of groups"])
def test_nothing_that_is_told_depends_on_the_groups(tmp_path: Path, collector: Collector, service: str) -> None:
    both = []
    for name, share in (("few", 3), ("half", 2)):
        (tmp_path / name).mkdir()
        rows = [f"{'ab'[number % share == 0]},{number // 2 % 2}" for number in range(PEOPLE)]
        both.append(collected(tmp_path / name, collector, rows, service))
    assert (both[0] == both[1]) is not bool(service)


@pytest.mark.check
def test_a_collector_that_is_not_there_stops_nothing(tmp_path: Path) -> None:
    deployment = told(Deployment(tmp_path), "http://127.0.0.1:9")
    serve_and_ask(deployment)
    assert "Traceback" not in deployment.log


@pytest.mark.check
def test_without_the_extra_there_is_one_line(tmp_path: Path) -> None:
    deployment = told(Deployment(tmp_path), "http://127.0.0.1:9")
    hidden = "import sys; sys.modules['opentelemetry'] = None; from compliance.__main__ import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", hidden, "--policy", str(tmp_path / "policy.toml")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(
        r"compliance: deployment\.telemetry: cannot import opentelemetry.*: pip install 'fairwall\[telemetry\]', "
        r"or leave the key out\n",
        ended.stderr.splitlines(keepends=True)[-1],
    )
    assert deployment.folder == tmp_path


def test_a_service_that_tells_nobody_imports_nothing_of_it() -> None:
    modules = (
        "import compliance.__main__, compliance.deployment.serve, sys; "
        "print([name for name in sys.modules if 'opentelemetry' in name])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", modules], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert loaded.stdout == "[]\n"
