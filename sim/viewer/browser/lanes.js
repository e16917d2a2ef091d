// The four lifelines beside each message, and the arrow from who speaks to who hears.

import { drawn, el } from "./elements.js";
import { line } from "./labels.js";
import { laneStep } from "./measures.js";

export function lanes(run, row, height) {
  const step = laneStep();
  const width = step * run.parties.length;
  // A stranger, who is no party, stands at the edge.
  const place = (party) => (run.parties.includes(party) ? (run.parties.indexOf(party) + 0.5) * step : width);
  const from = place(row.from);
  const towards = Math.sign(place(row.to) - from) || -1;
  const end = place(row.to) - 3 * towards;
  const middle = height / 2;
  const lifelines = run.parties.map((party) =>
    drawn("line.lifeline", { x1: place(party), x2: place(party), y1: 0, y2: height }),
  );
  const head =
    row.kind === "refuses"
      ? `M ${end - 5} ${middle - 5} l 10 10 m 0 -10 l -10 10`
      : `M ${end - 8 * towards} ${middle - 5} L ${end} ${middle} L ${end - 8 * towards} ${middle + 5}`;
  return drawn(
    "svg.lanes",
    { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    ...lifelines,
    drawn(`circle.end.level-${row.level}`, { cx: from, cy: middle, r: 3 }),
    line(row.level, { x1: from, x2: end, y1: middle, y2: middle }),
    drawn(`path.head.level-${row.level}`, { d: head }),
  );
}

export function laneHeads(run) {
  return el(
    "div.lane-heads",
    { "aria-hidden": "true" },
    ...run.parties.map((party) =>
      el("span", { title: party }, el("span.whole", {}, party), el("span.initial", {}, party[0].toUpperCase())),
    ),
  );
}
