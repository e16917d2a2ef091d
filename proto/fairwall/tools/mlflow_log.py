"""Log an answer of compliance to MLflow: the gaps, their intervals, and the costs."""

from __future__ import annotations

import math

from fairwall.client.gaps import Answer

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: rows about people."""


def log_answer(answer: Answer, metric: str) -> None:
    """Log an answer to the active run.

    Numbers are metrics: ``audit_<metric>_gap``, ``_low``, ``_high``, ``_likely_low``, ``_likely_high`` and
    ``_probability_above``, with the model's number in the batch as the step, and ``audit_epsilon_charged`` and
    ``audit_epsilon_remaining``. Unknown numbers are left out. The request id is the tag ``audit_<metric>_request``: the
    id gets the same answer again, and finds it on the page of compliance's ledger. ``metric`` is such as "sp".
    """
    import mlflow

    above = answer.probability_above
    columns = {"gap": answer.gaps, "low": answer.low, "high": answer.high}
    columns |= {"likely_low": answer.likely_low, "likely_high": answer.likely_high}
    for name, values in (columns if above is None else columns | {"probability_above": above}).items():
        for model, value in enumerate(values.tolist()):
            if not math.isnan(value):
                mlflow.log_metric(f"audit_{metric}_{name}", value, step=model)
    mlflow.log_metric("audit_epsilon_charged", answer.epsilon_charged)
    mlflow.log_metric("audit_epsilon_remaining", answer.epsilon_remaining_now)
    mlflow.set_tag(f"audit_{metric}_request", answer.request_id)
