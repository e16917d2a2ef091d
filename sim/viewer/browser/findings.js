// What `fairwall verify` finds, each finding with a link to the message that it is about.

import { ofTrial } from "./address.js";
import { el, plural } from "./elements.js";

export function findingsScreen(run) {
  const { findings, notes, messages, columns } = run.checked;
  const rows = findings.map(({ check, where, text, at }) =>
    el(
      "tr",
      {},
      el("td", {}, el("code", {}, check)),
      el("td.where", {}, where),
      el("td", {}, text),
      el("td", {}, at ? el("a", { href: ofTrial(...at) }, `trial ${at[0]}, message ${at[1]}`) : "the whole run"),
    ),
  );
  const sought = `${plural(messages, "message")} checked, ${plural(columns, "protected column")} sought in what was received.`;
  return el(
    "div.findings",
    {},
    el("h1", { tabindex: "-1" }, findings.length ? plural(findings.length, "finding") : "No findings"),
    el(
      "p",
      {},
      findings.length
        ? "What is recorded does not fit together, or reached somebody whom it is not for. "
        : "The record is whole, both sides of every call agree, and nobody received what is not theirs. ",
      sought,
    ),
    rows.length > 0 &&
      el(
        "table.found",
        { "aria-label": "Findings" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ...["check", "where", "what is wrong", "message"].map((head) => el("th", { scope: "col" }, head)),
          ),
        ),
        el("tbody", {}, ...rows),
      ),
    el("h2", {}, "To be known"),
    el("ul.notes", {}, ...notes.map((note) => el("li", {}, note))),
  );
}
