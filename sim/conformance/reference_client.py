"""A developer's client that the tester of clients starts: it requests the terms, and one batch within them.

    python -m sim.conformance.reference_client --address HOST:PORT --credentials DIR

The exit status is 0 if the batch was answered.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from fairwall.client import AuditClient, AuditRefused, AuditUnavailable


def main() -> None:
    """Request the terms and one batch."""
    parser = argparse.ArgumentParser(description="Ask for one batch.")
    parser.add_argument("--address", required=True)
    parser.add_argument("--credentials", required=True)
    asked = parser.parse_args()
    try:
        with AuditClient(asked.address, asked.credentials) as audits:
            terms = audits.terms()
            predictions = np.random.default_rng(1).random((min(9, terms.queries_max), terms.people))
            epsilon = max(terms.epsilon_min, min(terms.epsilon_max, terms.epsilon_remaining / 8))
            audits.ask(predictions, terms.metrics[0], epsilon)
    except (AuditRefused, AuditUnavailable) as error:
        print(f"no answer: {error}", file=sys.stderr)  # noqa: T201
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
