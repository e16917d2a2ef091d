// Puts the page together, and follows its address.

import { read } from "./address.js";
import { BesideScreen } from "./beside.js";
import { el, replace } from "./elements.js";
import { findingsScreen } from "./findings.js";
import { Overview } from "./overview.js";
import { TrialScreen } from "./trial.js";

const run = JSON.parse(document.getElementById("index").textContent);
const main = el("main", { id: "main" });
const links = {
  trials: el("a", { href: "#" }, "Trials"),
  trial: el("a", { href: "#trial=" + (run.trials.length ? run.trials[0].id : "") }, "Replay"),
  findings: run.checked && el("a", { href: "#findings" }, "Findings"),
  beside: run.beside && el("a", { href: "#beside" }, "Beside"),
};
const made = {};
const screens = {
  trials: () => new Overview(run),
  trial: () => new TrialScreen(run),
  findings: () => run.checked && { box: findingsScreen(run) },
  beside: () => run.beside && new BesideScreen(run),
};

replace(
  document.getElementById("page"),
  el(
    "a.skip",
    {
      href: "#main",
      onclick: (event) => {
        event.preventDefault();
        main.querySelector("h1").focus();
      },
    },
    "to the content",
  ),
  el(
    "header",
    {},
    el("p.run", {}, run.run, run.as && el("span.as", {}, ` as the ${run.as} saw it`)),
    el("nav", { "aria-label": "Screens" }, ...Object.values(links).filter(Boolean)),
  ),
  main,
);

let shown = null;

async function follow() {
  const asked = location.hash;
  const address = read(asked);
  const trial = run.trials.find((one) => one.id === address.trial);
  const name = address.screen === "trial" && !trial ? "trials" : address.screen;
  made[name] = made[name] || screens[name]() || null;
  const screen = made[name] || (made.trials = made.trials || screens.trials());
  if (shown !== screen) {
    if (shown && shown.hide) shown.hide();
    replace(main, screen.box);
    if (shown) main.querySelector("h1").focus();
    window.scrollTo(0, 0);
    shown = screen;
  }
  for (const [key, link] of Object.entries(links)) {
    if (link) link.toggleAttribute("data-current", key === name);
    if (link) key === name ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  }
  if (name === "trial") await screen.show(trial, address.message);
  await screen.ready;
  document.title = `${main.querySelector("h1").textContent}, ${run.run}`;
  document.body.dataset.ready = asked;
}

window.addEventListener("hashchange", follow);
follow();
