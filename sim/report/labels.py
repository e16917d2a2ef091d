"""Labels at points: each beside its own, where it covers no other point and no other label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.transforms import Bbox

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_PLACES = (
    *((4, 3, "left", "bottom"), (4, -3, "left", "top"), (-4, 3, "right", "bottom"), (-4, -3, "right", "top")),
    *((6, 0, "left", "center"), (-6, 0, "right", "center"), (0, 6, "center", "bottom"), (0, -6, "center", "top")),
    *((9, 12, "left", "bottom"), (9, -12, "left", "top"), (-9, 12, "right", "bottom"), (-9, -12, "right", "top")),
    *((14, 22, "left", "bottom"), (14, -22, "left", "top"), (-14, 22, "right", "bottom"), (-14, -22, "right", "top")),
    *((24, 36, "left", "bottom"), (24, -36, "left", "top"), (-24, 36, "right", "bottom"), (-24, -36, "right", "top")),
)
"""Where a label may stand, best first: so many points to the right and up, and how it is aligned there.

Beside the cross of the point's intervals first, then on it, then further away.
"""

_MARK = 4
"""Half of the width of a mark, in pixels of the canvas, with some room."""

_SAMPLES = 20
"""So many points of each piece of a line are kept free."""

_NEAR = 8
"""In so many of the first places a label needs no line that leads to its point."""


@dataclass(frozen=True)
class Label:
    """A text at a point of the axes."""

    x: float
    y: float
    text: str
    colour: str


def set_labels(axes: Axes, labels: Sequence[Label], lines: Sequence[Line2D] = (), *, size: float = 8) -> int:
    """Write each label in the first place beside its point that is free; the first labels choose first.

    To be called when everything else is drawn, since it lays the canvas out. A label that finds no place is left out.

    Parameters
    ----------
    labels : sequence of Label
        Their points are kept free, too.
    lines : sequence of Line2D
        Drawn on the axes; they are kept free.
    size : float
        Of the letters, in points.

    Returns
    -------
    int
        How many labels were left out.
    """
    canvas = axes.get_figure()
    assert isinstance(canvas, Canvas), "it is on one"
    canvas.draw_without_rendering()
    frame = axes.get_window_extent()
    taken = [
        Bbox([[x - _MARK, y - _MARK], [x + _MARK, y + _MARK]])
        for x, y in (axes.transData.transform((label.x, label.y)) for label in labels)
    ]
    for line in lines:
        path = line.get_path()
        if np.shape(path.vertices)[0] > 1:
            along = axes.transData.transform(path.interpolated(_SAMPLES).vertices)
            taken += [Bbox([[x - 1, y - 1], [x + 1, y + 1]]) for x, y in along]
    left_out = 0
    for label in labels:
        for place, (right, up, across, upright) in enumerate(_PLACES):
            text = axes.annotate(
                label.text,
                (label.x, label.y),
                (right, up),
                textcoords="offset points",
                ha=across,
                va=upright,
                fontsize=size,
                color=label.colour,
                arrowprops={"arrowstyle": "-", "lw": 0.5, "color": label.colour} if place >= _NEAR else None,
                zorder=6,
            )
            # Narrower than it will be: pages use the reader's own letters.
            box = text.get_window_extent().expanded(1.06, 1.0)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()
        else:
            left_out += 1
    # What was written is in nobody's way: the layout that it was placed in stays.
    for written in axes.texts:
        written.set_in_layout(False)
    return left_out
