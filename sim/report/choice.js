const told = JSON.parse(document.getElementById("told").textContent);
const slider = document.getElementById("width");
const cards = [...document.querySelectorAll("#chooser .card")];
const rows = [...document.querySelectorAll("#grid ~ .scroll tbody tr")];
const marks = [...document.querySelectorAll("figure g[id*='-mark-']")];

// Which epsilon is enough for which half-width is told; the last answer is that none is.
function show() {
  const [width, row] = told.positions[slider.value];
  const answer = told.answers.at(row);
  document.getElementById("wanted").textContent = width;
  slider.setAttribute("aria-valuetext", `${width}: ${answer.map(([large]) => large).join(", ")}`);
  for (const [place, card] of cards.entries()) {
    card.querySelector(".large").textContent = answer[place][0];
    card.querySelector(".meaning").textContent = answer[place][1];
  }
  for (const mark of marks) mark.classList.toggle("shown", mark.id.endsWith(`-mark-${row}`));
  for (const [place, one] of rows.entries())
    if (place === row) one.setAttribute("aria-current", "true");
    else one.removeAttribute("aria-current");
}

slider.addEventListener("input", show);
show();
document.getElementById("chooser").hidden = false;
