// Asks compliance from the command line.
//
//     node ask.js terms --address HOST:PORT --credentials DIR
//     node ask.js audit --address HOST:PORT --credentials DIR --predictions FILE --metric sp --epsilon 0.5
//                       [--type uint8] [--threshold 0.1] [--request-id ID] [--json]
//     node ask.js try   --address HOST:PORT --credentials DIR
//
// FILE is a JSON array of models, each an array of one prediction a person. `try` asks for the terms, and by them for one
// batch of made-up models: so the tester of clients starts it. With `--descriptors FILE` it needs no .proto file, with
// `--data NAME` it asks about a data set that is not called like the deployment. Status 0 if it was answered, 1 if not, 2
// for what cannot be asked.

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { AuditClient, Refused, Unavailable } from "./audit_client.js";

const TEXTS = "address credentials descriptors data predictions metric epsilon type threshold request-id".split(" ");
const COMMANDS = { terms, audit, try: tryOut };

async function terms(client) {
  return JSON.stringify(await client.terms(), null, 2);
}

async function audit(client, { predictions, metric, epsilon, type, threshold, "request-id": request_id, json }) {
  if (predictions === undefined || metric === undefined) throw new Error("--predictions and --metric are needed");
  const batch = JSON.parse(readFileSync(predictions, "utf8"));
  const compared = threshold === undefined ? {} : { threshold: Number(threshold) };
  const answer = await client.audit(batch, { metric, epsilon: Number(epsilon), type, request_id, ...compared });
  return json ? JSON.stringify(answer) : lines(answer);
}

async function tryOut(client) {
  const { people, queries_max, metrics, epsilon_remaining, epsilon_max, epsilon_min } = await client.terms();
  const row = () => Array.from({ length: people }, Math.random);
  const batch = Array.from({ length: Math.min(9, queries_max) }, row);
  const metric = metrics[0].replace("METRIC_", "").toLowerCase();
  const epsilon = Math.max(epsilon_min, Math.min(epsilon_max, epsilon_remaining / 8));
  return lines(await client.audit(batch, { metric, epsilon }));
}

function lines({ gaps, low, high, likely_low, likely_high, probability_above, epsilon_charged, epsilon_remaining_now }) {
  const told = gaps.map((gap, model) => {
    const told = !Number.isNaN(low[model]);
    const ends = (told ? [low, high] : [likely_low, likely_high]).map((end) => end[model].toFixed(4));
    const interval = Number.isNaN(likely_low[model]) ? "" : `, ${told ? "" : "likely "}between ${ends.join(" and ")}`;
    const above = probability_above ? `, above the threshold with probability ${probability_above[model].toFixed(3)}` : "";
    return `model ${model}: ${gap.toFixed(4)}${interval}${above}`;
  });
  return [...told, `charged ${epsilon_charged}, ${epsilon_remaining_now} is left`].join("\n");
}

function given() {
  const options = { json: { type: "boolean" }, ...Object.fromEntries(TEXTS.map((name) => [name, { type: "string" }])) };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const command = Object.hasOwn(COMMANDS, positionals[0]) ? COMMANDS[positionals[0]] : undefined;
  if (command === undefined) throw new Error(`say what to do: ${Object.keys(COMMANDS).join(", ")}`);
  if (!values.address || !values.credentials) throw new Error("--address and --credentials are needed");
  return [command, values];
}

let client;
try {
  const [command, values] = given();
  client = new AuditClient(values.address, values.credentials, values);
  console.log(await command(client, values));
} catch (error) {
  // A protobuf map arrives in any order.
  const numbers = Object.entries(error.numbers ?? {}).sort().map(([name, number]) => `, ${name} ${number}`);
  console.error(`ask: ${error.message}${numbers.join("")}`);
  process.exitCode = error instanceof Refused || error instanceof Unavailable ? 1 : 2;
} finally {
  client?.close();
}
