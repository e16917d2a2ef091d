// The inspector: one message with all that is known of it.

import { arrayView, sizeOf } from "./arrays.js";
import { json } from "./blocks.js";
import { bytesInWords, el, plural, replace } from "./elements.js";
import { badge, whoMayLearn } from "./labels.js";

const DETAILS_A_BLOCK = 64;

function numbered([at, left], index, all) {
  const among = (number, many) => `${(number + 1).toLocaleString("en")} of ${many.toLocaleString("en")}`;
  return `Message ${among(at, left)}${left < all ? ` shown; ${among(index, all)} in all` : ""}`;
}

export class Inspector {
  constructor(run) {
    this.run = run;
    this.box = el("section.inspector", { "aria-label": "The message", tabindex: "-1" });
    this.shown = 0;
  }

  // Shows that there is no such message; `clear` and `show` end what an earlier one still waits for.
  clear(text) {
    this.shown++;
    this.fields = [];
    replace(this.box, el("p.soft", {}, text));
  }

  // `place` is which of how many messages it is that the filters leave.
  async show(trial, rows, index, place = [index, rows.length]) {
    const token = ++this.shown;
    const row = rows[index];
    const details = (await json(trial.blocks[1][Math.floor(index / DETAILS_A_BLOCK)]))[index % DETAILS_A_BLOCK];
    if (token !== this.shown) return;
    this.fields = details.fields;
    replace(
      this.box,
      el("p.number", {}, numbered(place, index, rows.length)),
      el("h2.sentence", {}, row.text),
      el(
        "p.who",
        {},
        `${row.from} → ${row.to}, `,
        el("code", {}, row.method),
        ` ${row.kind} `,
        badge(this.run, row.level),
      ),
      this.record(details),
      this.table(details.fields, row),
      details.other && this.otherCopy(details),
    );
  }

  record(details) {
    const places = Object.entries(details.entries).map(
      ([party, [first, last]]) => `${party}, entry ${first}${last > first ? ` to ${last}` : ""}`,
    );
    const copies =
      {
        same: "Both sides recorded the same bytes.",
        differ: "The two sides recorded different bytes.",
      }[details.copies] || (this.run.as ? "" : "One side alone recorded it.");
    return el(
      "dl.record",
      {},
      el("dt", {}, "call"),
      el("dd", {}, details.call),
      el("dt", {}, "recorded by"),
      el("dd.entries", {}, places.join("; ")),
      details.messages && [
        el("dt", {}, "size"),
        el(
          "dd",
          {},
          [plural(details.messages, "message"), details.bytes !== undefined && bytesInWords(details.bytes)]
            .filter(Boolean)
            .join(", "),
        ),
      ],
      copies && [el("dt", {}, "copies"), el(`dd${details.copies === "differ" ? ".warn" : ""}`, {}, copies)],
    );
  }

  // Marks the fields that are otherwise in another inspector.
  compare(other) {
    const there = new Map((other.fields || []).map(([path, , value]) => [path, JSON.stringify(value)]));
    this.box.querySelectorAll(".fields > tbody > tr").forEach((row, place) => {
      const [path, , value] = this.fields[place] || [];
      row.classList.toggle("differs", path !== undefined && there.get(path) !== JSON.stringify(value));
    });
  }

  otherCopy(details) {
    return el(
      "details.other",
      { open: true },
      el("summary", {}, `As ${details.other.party} recorded it; above, as ${details.of} did`),
      this.table(details.other.fields, { text: "the other copy" }),
    );
  }

  table(fields, row) {
    if (!fields.length) return el("p.soft", {}, "It says nothing else.");
    const body = fields.map(([path, level, value]) =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }, ...path.split(/(?<=[._])/).flatMap((part) => [part, el("wbr")])),
        el("td.value", {}, this.value(value, path)),
        el("td.may", {}, badge(this.run, level), el("span.soft", {}, ` ${whoMayLearn(this.run, level)}`)),
      ),
    );
    return el(
      "table.fields",
      { "aria-label": `Fields of: ${row.text}` },
      el(
        "thead",
        {},
        el("tr", {}, ...["field", "value", "who may learn it"].map((head) => el("th", { scope: "col" }, head))),
      ),
      el("tbody", {}, ...body),
    );
  }

  value(value, path) {
    if (typeof value === "string") return value;
    if (value.omitted) return el("span.omitted", {}, "left out: it is not for these eyes");
    if (value.array !== undefined) return this.array(value, path);
    return bytesView(value);
  }

  array(value, path) {
    const inside = el("div");
    const open = async (event) => {
      if (!event.currentTarget.open || inside.childNodes.length) return;
      replace(inside, await arrayView(value, path));
    };
    return el("details.array-of", { ontoggle: open }, el("summary", {}, `${value.array} ${sizeOf(value)}`), inside);
  }
}

function bytesView(value) {
  return el(
    "div.bytes",
    {},
    el("p.about", {}, `${bytesInWords(value.bytes)}${value.by_digest ? ", recorded by their digest alone" : ""}`),
    value.head && el("p.digest", {}, el("code", {}, value.head), value.bytes * 2 > value.head.length ? " …" : ""),
    el("p.digest", {}, "BLAKE3 ", el("code", {}, value.digest)),
  );
}
