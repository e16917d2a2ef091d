// What depends on the width of the window: the distance of lifelines, and the height of a message's row.

const narrow = window.matchMedia("(max-width: 45rem)");

export function laneStep() {
  return narrow.matches ? 25 : 84;
}

export function rowHeight() {
  return narrow.matches ? 56 : 40;
}

export function cellHeight() {
  return narrow.matches ? 92 : 64;
}

export function onChange(redraw) {
  narrow.addEventListener("change", redraw);
}
