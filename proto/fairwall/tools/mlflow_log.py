"""Logs an answer of compliance to MLflow: the gaps, how sure they are, and what they cost."""

from __future__ import annotations

import math

from fairwall.client.gaps import Answer

__tracebackhide__ = True
"""pytest shows the arguments of what failed, and these are rows about people."""


def log_answer(answer: Answer, metric: str) -> None:
    """Log an answer to the run that is active.

    Numbers are metrics, ``audit_<metric>_gap``, ``_low``, ``_high``, ``_likely_low``, ``_likely_high`` and
    ``_probability_above`` with the model's number in the batch as the step, and ``audit_epsilon_charged`` and
    ``audit_epsilon_remaining``. What is not known is left out. The request id is the tag ``audit_<metric>_request``:
    under it the answer can be had again, and found on the page of compliance's ledger.

    Parameters
    ----------
    metric : str
        What was asked for, such as "sp".
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
