const told = JSON.parse(document.getElementById("told").textContent);
const [people, now, found] = ["people", "now", "found"].map((id) => document.getElementById(id));
const sliders = Object.fromEntries(["epsilon", "queries", "guess"].map((id) => [id, document.getElementById(id)]));
const many = told.groups.length;
const still = matchMedia("(prefers-reduced-motion: reduce)");
let turn = 0;

const dots = [...told.groups].map(() => people.appendChild(document.createElement("i")));

function cell(queries) {
  const mechanism = document.querySelector("[name=mechanism]:checked").value;
  return told.cells[mechanism][sliders.epsilon.value][queries];
}

const questions = (queries) => (told.queries[queries] === 1 ? "1 question" : `${told.queries[queries]} questions`);

// Turns each dot whose guess is another one; at the end wrong ones get a ring.
function show(guess, wrongly) {
  for (const [person, dot] of dots.entries()) {
    const look = guess ? `is-${guess[person]}` : "";
    const turned = dot.classList.contains("turned") !== !dot.classList.contains(look || "never");
    dot.className = [look, turned && "turned", wrongly && guess[person] !== told.groups[person] && "wrong"]
      .filter(Boolean)
      .join(" ");
  }
}

function paragraph(text) {
  found.appendChild(document.createElement("p")).textContent = text;
}

// What was chosen is another thing now: nothing is shown of it yet.
function choose() {
  turn++;
  const [epsilon] = told.epsilons[sliders.epsilon.value];
  const texts = {
    epsilon: epsilon === "∞" ? "∞, no noise" : epsilon,
    queries: String(told.queries[sliders.queries.value]),
    guess: sliders.guess.value,
  };
  for (const [id, text] of Object.entries(texts)) {
    document.getElementById(`${id}-told`).textContent = text;
    sliders[id].setAttribute("aria-valuetext", text);
  }
  now.textContent = "Nobody is guessed yet: each dot is a person.";
  people.setAttribute("aria-label", "Nobody is guessed yet");
  found.replaceChildren();
  show("", false);
}

async function ask() {
  choose();
  const mine = turn;
  people.scrollIntoView({ block: "nearest" });
  const last = Number(sliders.queries.value);
  for (let queries = 0; queries <= last; queries++) {
    const { guess } = cell(queries);
    const right = dots.filter((_, person) => guess[person] === told.groups[person]).length;
    show(guess, queries === last);
    now.textContent = `After ${questions(queries)}${queries === last ? `: ${right} of ${many} right in this trial` : ""}`;
    people.setAttribute("aria-label", `A dot for each person. ${now.textContent}`);
    if (queries < last && !still.matches) await new Promise((resolve) => setTimeout(resolve, 900));
    if (turn !== mine) return;
  }
  const { right, balanced, error, trials } = cell(last);
  const [epsilon, most] = told.epsilons[sliders.epsilon.value];
  const average = Math.round(right);
  const off = Math.abs(average - sliders.guess.value);
  paragraph(
    `You guessed ${sliders.guess.value} of ${many}. On average over ${trials} trials it had ${average} of ${many} right` +
      (off ? `, ${off} ${average > sliders.guess.value ? "more" : "fewer"}` : ", as you said") +
      `; counting both groups equally, ${balanced.toFixed(0)}%. A coin gets 50%.`,
  );
  paragraph(epsilon === "∞" ? "Answers were exact: nobody is promised anything." : `A typical answer was off by ${error}.`);
  if (epsilon !== "∞" && most > 99.9) paragraph(`Epsilon ${epsilon} promises a single person next to nothing.`);
  if (most < 99.9)
    paragraph(
      `Whoever knows how large each group is, and tosses a coin about one person before, is sure of that person up to ` +
        `${most.toFixed(1)}% at most: that is what epsilon ${epsilon} promises, e^2ε/(1+e^2ε).`,
    );
}

for (const input of document.querySelectorAll("#lesson input")) input.addEventListener("input", choose);
document.getElementById("ask").addEventListener("click", ask);
choose();
document.getElementById("lesson").hidden = false;
