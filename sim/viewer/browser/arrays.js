// An array as the inspector shows it: a strip of all values, a histogram, and the first hundred.

import { bytesInWords, drawn, el, plural } from "./elements.js";
import { joined } from "./blocks.js";

const FIRST = 100;
const BINS = 24;
const STRIP = 256;
const ELEMENT_BYTES = { float64: 8, float32: 4, uint8: 1 };
const READ = { float64: Float64Array, float32: Float32Array, uint8: Uint8Array };

export function sizeOf(array) {
  return array.shape.length ? array.shape.map((length) => length.toLocaleString("en")).join(" × ") : "1";
}

export async function numbers(array) {
  const bytes = await joined(array.places);
  const width = ELEMENT_BYTES[array.array];
  const whole = bytes.slice(0, bytes.length - (bytes.length % width));
  return new READ[array.array](whole.buffer, 0, whole.length / width);
}

export async function arrayView(array, name) {
  const about = `${array.array}, ${sizeOf(array)}, ${bytesInWords(array.bytes)}`;
  const parts = [el("p.about", {}, about)];
  if (array.by_digest) parts.push(el("p.note", {}, "Recorded by its digest alone."));
  const seen = array.places && array.array ? summed(await numbers(array)) : summedBefore(array);
  if (!array.places && seen) parts.push(el("p.note", {}, "Too large for this page: only what is seen here is in it."));
  if (seen && seen.strip) parts.push(strip(seen.strip, name), histogram(seen.histogram, name));
  if (seen) parts.push(firstValues(seen.first, array.shape));
  if (array.digest) parts.push(el("p.digest", {}, "BLAKE3 ", el("code", {}, array.digest)));
  return el("div.array", {}, ...parts);
}

function summedBefore(array) {
  return array.first ? { first: array.first, strip: array.strip, histogram: array.histogram } : null;
}

function summed(values) {
  const first = Array.from(values.slice(0, FIRST), short);
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (Number.isFinite(value)) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (low > high) return { first };
  const counts = new Array(BINS).fill(0);
  const sums = new Array(Math.min(STRIP, values.length)).fill(0);
  const filled = new Array(sums.length).fill(0);
  for (let place = 0; place < values.length; place++) {
    const value = values[place];
    if (!Number.isFinite(value)) continue;
    counts[Math.min(BINS - 1, Math.floor((BINS * (value - low)) / (high - low || 1)))]++;
    const part = Math.floor((place * sums.length) / values.length);
    sums[part] += value;
    filled[part]++;
  }
  return {
    first,
    strip: sums.map((sum, part) => (filled[part] ? sum / filled[part] : low)),
    histogram: [low, high, counts],
  };
}

function short(value) {
  if (!Number.isFinite(value)) return String(value).replace("Infinity", "∞");
  return value.toLocaleString("en", Number.isInteger(value) ? {} : { maximumSignificantDigits: 4 });
}

function strip(means, name) {
  const low = Math.min(...means);
  const high = Math.max(...means);
  const bars = means.map((mean, place) =>
    drawn("rect.ink", {
      x: place,
      y: 0,
      width: 1.02,
      height: 10,
      "fill-opacity": (0.06 + (0.94 * (mean - low)) / (high - low || 1)).toFixed(3),
    }),
  );
  return el(
    "figure",
    {},
    drawn(
      "svg.strip",
      {
        viewBox: `0 0 ${means.length} 10`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": `${name} in its order, from ${short(low)}, faint, to ${short(high)}, strong`,
      },
      ...bars,
    ),
    el("figcaption", {}, `in order; faint ${short(low)}, strong ${short(high)}`),
  );
}

function histogram([low, high, counts], name) {
  const most = Math.max(...counts);
  const bars = counts.map((count, bin) =>
    drawn("rect.bar", { x: bin * 10 + 1, y: 40 - (40 * count) / most, width: 8, height: (40 * count) / most }),
  );
  const peak = counts.indexOf(most);
  const around = low + ((high - low) * (peak + 0.5)) / counts.length;
  return el(
    "figure",
    {},
    drawn(
      "svg.histogram",
      {
        viewBox: `0 0 ${counts.length * 10} 40`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": `How often ${name} has each value, from ${short(low)} to ${short(high)}; most often near ${short(around)}`,
      },
      ...bars,
    ),
    el(
      "figcaption.ends",
      {},
      el("span", {}, short(low)),
      el("span", {}, `up to ${plural(most, "value")} a bar`),
      el("span", {}, short(high)),
    ),
  );
}

function firstValues(first, shape) {
  const all = shape.reduce((product, length) => product * length, 1);
  return el(
    "details",
    {},
    el("summary", {}, first.length < all ? `the first ${first.length} values` : plural(first.length, "value")),
    el("p.values", {}, first.join("  ")),
  );
}
