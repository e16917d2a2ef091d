"""How long the page of a long run takes to open in a browser, beside a page that holds nothing.

    python benchmarks/viewer.py [--messages 100000] [--rounds 5] [--chromium /usr/bin/chromium]

The run is made up: one trial, in which the developer asks batch after batch. Opened is the trial at its last message,
in headless Chromium, until that message is drawn with all that is known of it. It takes `playwright`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from short import parsed

from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.rpc.arrays import header_of, to_message
from fairwall.rpc.recorder import CALL_KEY, TranscriptRecorder
from fairwall.wire.v1.metric_pb2 import METRIC_SP
from sim.viewer.page import open_run, page

SCENARIO = """
[scenario]
name = "long"
game = "reveal"
trials = 1
[data]
source = "synthetic"
n = 30
n0 = 12
scores = "uniform"
[compliance]
mechanism = "conceal"
epsilon = 10.0
[developer]
strategy = "sensing"
queries = 4
"""
METHOD = "/fairwall.compliance.v1.AuditService/Audit"
EMPTY = "<!doctype html><title>empty</title><div class='row' aria-selected='true'></div>"


def record(folder: Path, messages: int) -> None:
    """Record so many questions and answers, as the developer and compliance would have."""
    (folder / "scenario.toml").write_text(SCENARIO)
    developer, compliance = (
        TranscriptRecorder(folder / "transcript" / party / "1.bin", "long", party, "")
        for party in ("developer", "compliance")
    )
    rng = np.random.default_rng(0)
    for number in range(messages // 2):
        predictions, gaps = rng.integers(0, 2, (1, 100)).astype(np.uint8), rng.normal(size=1)
        header = audit.AuditHeader(
            request_id=f"metric-{number}",
            deal_id="deal-1",
            metric=METRIC_SP,
            epsilon=0.1,
            predictions=header_of(predictions),
        )
        requests = [audit.AuditRequest(header=header), audit.AuditRequest(predictions_chunk=predictions.tobytes())]
        answer = audit.AuditResponse(gaps=to_message(gaps), epsilon_charged=0.1, epsilon_remaining=1.0)
        asking = developer.calling("compliance", METHOD)
        answering = compliance.answering("developer", METHOD, [(CALL_KEY, str(asking.call.number))])
        for request in requests:
            answering.received(asking.sent(request.SerializeToString()))
        asking.received(answering.sent(answer.SerializeToString()))
        answering.ended()
        asking.ended()
    developer.close()
    compliance.close()


def opened(browser: Any, address: str) -> float:
    """Open a page in a window of its own; the seconds until a message is drawn and the page has been painted."""
    window = browser.new_context().new_page()
    start = time.perf_counter()
    window.goto(address)
    window.wait_for_selector('.row[aria-selected="true"]', state="attached")
    if "#" in address:
        window.wait_for_selector(".inspector .fields")
    window.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    seconds = time.perf_counter() - start
    window.close()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    asked = parsed(parser, messages=200, rounds=1)
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as place, sync_playwright() as play:
        folder = Path(place)
        record(folder, asked.messages)
        start = time.perf_counter()
        text = page(open_run(folder))
        seconds = time.perf_counter() - start
        print(f"page of {asked.messages:,} messages: {len(text):,} bytes, written in {seconds:.1f} s")
        (folder / "long.html").write_text(text)
        (folder / "empty.html").write_text(EMPTY)
        browser = play.chromium.launch(executable_path=asked.chromium, args=["--no-sandbox"])
        addresses = [f"file://{folder}/empty.html", f"file://{folder}/long.html#trial=1&m={asked.messages}"]
        rounds = [[opened(browser, address) for address in addresses] for _ in range(asked.rounds)]
        empty, full = (statistics.median(times) for times in zip(*rounds, strict=True))
        print(f"opened in {full:.2f} s, an empty page in {empty:.2f} s: {full / empty:.1f} times as long")


if __name__ == "__main__":
    main()
