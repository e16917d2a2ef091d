"""Write an answer of compliance about a model as text for its model card."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime

from fairwall.client.gaps import Answer
from fairwall.laws.groups.group_tables import spelled
from fairwall.laws.metrics.metric import find_metric

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: rows about people."""


def model_card(answer: Answer, name: str, *, model: int = 0, on: date | None = None) -> str:
    """Return a card's front matter in YAML, with a ``model-index`` as Hugging Face reads it, and a section in Markdown.

    Parameters
    ----------
    answer : Answer
        To a question that was asked ``once``, so that it has a digest of the predictions.
    name : str
        The model's name, on one line.
    model : int
        The model's number in the batch, from 0.
    on : date, optional
        The date of the answer; by default today, in UTC.

    Raises
    ------
    ValueError
        For an answer without a digest, a model that is not in it, or a name of several lines.
    """
    if not answer.digest:
        raise ValueError("the answer has no digest of the predictions: ask with once=True, which makes the id of it")
    if not 0 <= model < len(answer.gaps):
        raise ValueError(f"the answer has {len(answer.gaps)} models, numbered from 0, and none is {model}")
    if not name.isprintable() or not name:
        raise ValueError("name must be one line of printable characters")
    gap, low, high = (float(numbers[model]) for numbers in (answer.gaps, answer.low, answer.high))
    day, title = (on or datetime.now(UTC).date()).isoformat(), find_metric(answer.metric).title
    sure, ends = "of the exact one, nothing", ""
    if not math.isnan(low):
        sure = f"the exact one lies between {low:.3f} and {high:.3f} in at least 95% of cases, whoever the people are"
        ends = f"\n        low: {_number(low)}\n        high: {_number(high)}"
    return f"""---
model-index:
- name: {_quoted(name)}
  results:
  - task:
      type: tabular-classification
    dataset:
      name: {_quoted(answer.data)}
      type: {_quoted(answer.data)}
    metrics:
    - type: {answer.metric}
      name: {title}, with noise
      value: {_number(gap)}
      args:{ends}
        epsilon: {_number(answer.epsilon_charged)}
        models_in_batch: {len(answer.gaps)}
        digest: "{answer.digest}"
        date: "{day}"
---

## Fairness

The {title} of {name} on the data set {answer.data} was {spelled(gap)} on {day}.
This number is noisy: it was released under differential privacy, at epsilon {answer.epsilon_charged:,g} for one
person's protected attribute, which paid for {len(answer.gaps)} model(s) together. What is guaranteed: {sure}.

The BLAKE3 digest of what was asked, predictions included, is `{answer.digest}`;
the request was `{answer.request_id}`.
"""


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _number(value: float) -> str:
    """Return a number that YAML 1.1 reads back: with a point, before an exponent too."""
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e")
