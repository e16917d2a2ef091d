"""The figures of a ledger's page: spending over time, and answers with their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import dates as untyped_dates
from matplotlib.lines import Line2D

from sim.report.drawing import BLACK, COLOURS, DASHES, GREY, INCHES, MARKERS, Figure, legend, on_axes
from sim.report.notation import as_float, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

dates: Any = untyped_dates

ANSWERS_MAX = 60
"""Most answers in a figure; the last ones are drawn."""

_SHARES_MAX = 10
"""Most developers' shares in a figure; a legend has no room for more."""

_LABEL_MAX = 40

_WIDE = (10.4, 3.7)
_MANY = 12
"""Number of marks from which a figure takes the page's whole width, and scrolls sideways on a narrow one."""


def spent(account: Mapping[str, Any], dataset: str, developers: Sequence[str]) -> Figure | None:
    """Draw the spending of a data set's budget; None if nothing was spent. All on the page are in ``developers``."""
    lines = {one["developer"]: one["points"] for one in account["course"] if one["dataset"] == dataset}
    if not lines:
        return None
    ends = [_day(point[0]) for points in lines.values() for point in points]
    pause = max(max(ends) - min(ends), 60 / 86400) / 20
    first, last = min(ends) - pause, max(ends) + pause
    limits = [
        (max(_day(one["time"]), first), as_float(one["epsilon"]))
        for one in account["budgets"]
        if (one["dataset"], one["developer"]) == (dataset, None)
    ]

    def draw(axes: Axes) -> None:
        for who, points in sorted(lines.items(), key=lambda line: (line[0] is not None, line[0])):
            days = [first, *(_day(at) for at, _ in points), last]
            values = [0.0, *(as_float(value) for _, value in points)]
            values.append(values[-1])
            _step(axes, days, values, who, developers)
        if all(math.isfinite(epsilon) for _, epsilon in limits):
            axes.step(
                [*(day for day, _ in limits), last],
                [*(epsilon for _, epsilon in limits), limits[-1][1]],
                where="post",
                color=GREY,
                lw=1.2,
                ls=(0, (1, 1.5)),
                label="the data set's budget",
            )
        _over_time(axes, first, last, "ε spent")

    title = f"Spent of the budget of {dataset}"
    values = ", ".join(f"{who or 'all'} {number(points[-1][1])}" for who, points in lines.items())
    caption = "Composed by the data set's rule. Shares of developers may add up to more than its budget."
    place = sorted({one["dataset"] for one in account["course"]}).index(dataset)
    return _figure(f"spent-{place}", title, caption, f"Chart. {title}: {values}.", draw, len(set(ends)))


def left(account: Mapping[str, Any], dataset: str, developers: Sequence[str]) -> Figure | None:
    """Draw what was left of a data set's budget and of developers' shares over time; None if that is infinite."""
    whole = _left(account, dataset, None)
    lines = {who: _left(account, dataset, who) for who in (None, *developers)}
    lines = {who: points for who, points in lines.items() if points and math.isfinite(points[-1][1])}
    if None not in lines:
        return None
    shown = sorted(lines, key=lambda who: (who is not None, len(lines[who]) == 1, lines[who][-1][1]))[: _SHARES_MAX + 1]
    first, last = whole[0][0], max(_day(account["signedAt"]), whole[-1][0] + 60 / 86400)

    def draw(axes: Axes) -> None:
        for who in shown:
            days, values = zip(*lines[who], (last, lines[who][-1][1]), strict=True)
            _step(axes, days, values, who, developers)
        _over_time(axes, first, last, "ε left")

    title = f"Left of the budget of {dataset}"
    least = f" Of {len(lines) - 1} shares those {_SHARES_MAX} with the least." if len(shown) < len(lines) else ""
    caption = f"The budget less what is spent. A developer gets no more than is left of the data set's budget.{least}"
    values = ", ".join(f"{who or 'all'} {number(lines[who][-1][1])}" for who in shown)
    place = sorted({one["dataset"] for one in account["accounts"]}).index(dataset)
    return _figure(f"left-{place}", title, caption, f"Chart. {title}: {values}.", draw, len(whole))


def _left(account: Mapping[str, Any], dataset: str, developer: str | None) -> list[tuple[float, float]]:
    """Return (day, epsilon left of the account's budget at that time) at each change."""
    told: list[tuple[float, float | None, float | None]] = [
        (_day(one["time"]), as_float(one["epsilon"]), None)
        for one in account["budgets"]
        if (one["dataset"], one["developer"]) == (dataset, developer)
    ]
    for one in account["course"]:
        if (one["dataset"], one["developer"]) == (dataset, developer):
            told += [(_day(at), None, as_float(value)) for at, value in one["points"]]
    points, budget, spent = [], 0.0, 0.0
    for day, epsilon, so_far in sorted(told, key=lambda change: change[0]):
        budget, spent = (budget if epsilon is None else epsilon), (spent if so_far is None else so_far)
        points.append((day, max(0.0, budget - spent)))
    return points


def answers(account: Mapping[str, Any], metric: str, column: str, developers: Sequence[str]) -> Figure:
    """Draw the answers about a metric by a column, with their intervals, in the order of the ledger."""
    told = [
        (audit, which, model)
        for audit in account["audits"]
        if (audit["metric"], audit.get("by") or "") == (metric, column)
        for which, model in enumerate(audit["models"], start=1)
    ]
    shown = told[-ANSWERS_MAX:]

    def draw(axes: Axes) -> None:
        axes.axhline(0, color=GREY, lw=0.9, ls=":")
        for i, who in enumerate(developers):
            rows = [(x, model) for x, (audit, _, model) in enumerate(shown) if audit["developer"] == who]
            if not rows:
                continue
            xs = [x for x, _ in rows]
            gaps = np.array([as_float(model["gap"]) for _, model in rows])
            for kind, width in (("", 1.3), ("likely_", 3.5)):
                lows, highs = (
                    np.array([as_float(model.get(kind + end)) for _, model in rows]) for end in ("low", "high")
                )
                # Noise may move an answer out of its interval, which is within the metric's range.
                middle, half = (lows + highs) / 2, (highs - lows) / 2
                axes.errorbar(
                    xs,
                    middle,
                    half,
                    ls="",
                    capsize=0 if kind else 3,
                    elinewidth=width,
                    color=COLOURS[i % 6],
                    alpha=0.45 if kind else 1,
                    marker="",
                )
            axes.plot(xs, gaps, ls="", marker=MARKERS[i % 7], ms=5.5, color=COLOURS[i % 6], label=_label(who))
        names = [f"{audit['record']}" + (f".{which}" if len(audit["models"]) > 1 else "") for audit, which, _ in shown]
        every = math.ceil(len(shown) / 30)
        axes.set_xticks(range(0, len(shown), every), names[::every], rotation=90 if len(shown) > 12 else 0)
        axes.set_xlim(-0.7, len(shown) - 0.3)
        axes.set_xlabel("record of the ledger, and model of the batch")
        axes.set_ylabel(f"gap, {metric}" + (f" by {_label(column)}" if column else ""))
        legend(axes, [Line2D([], [], color=GREY, lw=0.9, ls=":", label="no gap")])

    title = f"Answers: {metric}" + (f" by {column}" if column else "")
    left_out = f" The last {ANSWERS_MAX} of {len(told)}." if len(told) > ANSWERS_MAX else ""
    caption = (
        f"Marks are answers. Thin bars hold the test set's exact gap with at least {account['confidence']:.0%} each, "
        f"broad ones are likely to; no bar where the mechanism knows none.{left_out}"
    )
    values = ", ".join(f"{number(model['gap'])}" for _, _, model in shown)
    place = sorted({one.get("by") or "" for one in account["audits"]}).index(column)
    return _figure(f"answers-{metric}-{place}", title, caption, f"Chart. {title}: {values}.", draw, len(shown))


def ratios(name: str, about: str, rows: Sequence[Mapping[str, Any]]) -> Figure | None:
    """Draw impact ratios with their intervals, model by model; None if no group is compared."""
    shown = [row for row in rows if row["ratio"] is not None]
    if not shown:
        return None

    def draw(axes: Axes) -> None:
        for level in (0.8, 1.0):
            axes.axhline(level, color=GREY, lw=0.9, ls=":" if level < 1 else "-")
        for i, which in enumerate(dict.fromkeys(row["model"] for row in shown)):
            xs = [x for x, row in enumerate(shown) if row["model"] == which]
            mid, low, high = (
                np.array([shown[x][key] for x in xs], np.float64) for key in ("ratio", "ratio_low", "ratio_high")
            )
            axes.errorbar(
                xs,
                mid,
                np.maximum([mid - low, high - mid], 0),
                ls="",
                capsize=3,
                color=COLOURS[i % 6],
                marker=MARKERS[i % 7],
                ms=5.5,
                label=f"model {which}",
            )
        names = [_label(", ".join(row["group"])) for row in shown]
        many = sum(map(len, names)) > 55
        axes.set_xticks(range(len(shown)), names, rotation=30 if many else 0, ha="right" if many else "center")
        axes.set_xlim(-0.7, len(shown) - 0.3)
        axes.set_ylim(0, 1.04)
        axes.set_ylabel("impact ratio")
        legend(axes, [Line2D([], [], color=GREY, lw=0.9, ls=":", label="four fifths")])

    values = "; ".join(f"{', '.join(row['group'])} {number(row['ratio'])}" for row in shown)
    caption = "Bars hold the exact ratio of these people with at least 95% each."
    return _figure(name, "Impact ratios", caption, f"Chart. {about}. Impact ratios: {values}.", draw, len(shown))


def _step(
    axes: Axes, days: Sequence[float], values: Sequence[float], who: str | None, developers: Sequence[str]
) -> None:
    """Draw one account over time: that of all developers, or one in the developer's style."""
    if who is None:
        axes.step(days, values, where="post", color=BLACK, lw=2.2, label="all developers")
        return
    i = developers.index(who)
    axes.step(
        days,
        values,
        where="post",
        color=COLOURS[i % 6],
        ls=DASHES[i % 7],
        lw=1.5,
        marker=MARKERS[i % 7],
        ms=5,
        markevery=slice(1, -1),
        label=_label(who),
    )


def _over_time(axes: Axes, first: float, last: float, name: str) -> None:
    place = dates.AutoDateLocator(tz=UTC, minticks=3, maxticks=8)
    axes.xaxis.set_major_locator(place)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(place, tz=UTC))
    axes.set_xlim(first, last)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time, UTC")
    axes.set_ylabel(name)
    legend(axes, [])


def _label(name: str) -> str:
    """Return a name safe for a legend, where dollars begin a formula, "_" hides a line, and the font lacks letters."""
    text = "".join(letter if " " <= letter <= "~" else "?" for letter in name)
    cut = text if len(text) <= _LABEL_MAX else f"{text[:_LABEL_MAX]}…"
    return " " * cut.startswith("_") + cut.replace("$", r"\$")


def _figure(name: str, title: str, caption: str, alt: str, draw: Callable[[Axes], None], marks: int) -> Figure:
    wide = marks >= _MANY
    return Figure(name, title, caption, alt, on_axes(draw), _WIDE if wide else INCHES, wide=wide)


def _day(time: str) -> float:
    return float(dates.date2num(datetime.fromisoformat(time)))
