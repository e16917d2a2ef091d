// A developer's client of compliance in JavaScript, by the documents alone: docs/protocol.md and the .proto files.

import { X509Certificate, randomUUID } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const PROTOS = fileURLToPath(new URL("../../proto", import.meta.url));
const NAMES = { keepCase: true, longs: Number, enums: String, defaults: true, oneofs: true };

const CHUNK_BYTES = 1 << 20;
const TERMS_SECONDS = 60;
const AUDIT_SECONDS = 600;
const ATTEMPTS = 3;
const PAUSE_MS = 200;

// Types of elements: how many bytes they take, which predictions they hold, how one is written.
const ELEMENTS = {
  float64: { size: 8, holds: (h) => h >= 0 && h <= 1, write: (view, at, h) => view.setFloat64(at, h, true) },
  uint8: { size: 1, holds: (h) => h === 0 || h === 1, write: (view, at, h) => view.setUint8(at, h) },
};

/**
 * Compliance refused; `reason` is a name of the protocol's list, `numbers` what that reason tells. Nothing was charged,
 * but for LEDGER_UNAVAILABLE: ask again under the same request id.
 */
export class Refused extends Error {
  constructor(reason, sentence, numbers) {
    super(`${reason}: ${sentence}`);
    this.reason = reason;
    this.numbers = numbers;
  }
}

/** No answer came. The same request may be sent again under the same id: it is charged once. */
export class Unavailable extends Error {}

export class AuditClient {
  /**
   * @param {string} address "host:port".
   * @param {string} credentials The folder with your authority.pem, certificate.pem and key.pem.
   * @param {{descriptors?: string, data?: string}} options The file that `fairwall test protocol --descriptors` writes, by
   *   default the .proto files of this repository; the data set's name, by default the deployment's.
   */
  constructor(address, credentials, { descriptors, data } = {}) {
    const paths = ["authority", "certificate", "key"].map((part) => join(credentials, `${part}.pem`));
    if (statSync(paths[2]).mode & 0o077) throw new Error(`${paths[2]}: others than its owner can use it; chmod 600 it`);
    const [authority, certificate, key] = paths.map((path) => readFileSync(path));
    const deployment = deploymentOf(certificate);
    const messages = load(descriptors);
    const Service = grpc.makeGenericClientConstructor(messages["fairwall.compliance.v1.AuditService"]);
    this.data = data ?? deployment;
    this.errors = messages["fairwall.wire.v1.AuditError"];
    this.service = new Service(address, grpc.credentials.createSsl(authority, key, certificate), {
      // Whoever answers must have the certificate of this deployment's compliance, wherever it is.
      "grpc.ssl_target_name_override": `compliance.${deployment}.fairwall`,
      // A retry is ours, under the same request id.
      "grpc.enable_retries": 0,
    });
  }

  close() {
    this.service.close();
  }

  /** What may be asked, and what is left of the budget. Costs nothing. */
  async terms() {
    return this.#call((done) => this.service.GetTerms({ deal_id: this.data }, deadline(TERMS_SECONDS), done));
  }

  /**
   * Ask for one metric of a batch of models.
   *
   * @param {number[][]} predictions One row a model, one column a person of the test set, in [0, 1].
   * @param {{metric: string, epsilon: number, type?: "float64" | "uint8", threshold?: number, request_id?: string}} asked
   *   `uint8` is for decisions, 0 or 1. The same request id with the same request gets the same answer at no cost; by
   *   default it is a new one.
   * @returns {Promise<object>} AuditResponse with arrays as numbers: one gap a model, with noise; the exact one lies
   *   between low and high with a probability of at least 95%, NaN where nothing is promised, and is believed to lie
   *   between likely_low and likely_high as often.
   */
  async audit(predictions, { metric, epsilon, type = "float64", threshold, request_id = randomUUID() }) {
    const bytes = inRows(predictions, ELEMENTS[type]);
    const header = {
      request_id,
      deal_id: this.data,
      metric: `METRIC_${metric.toUpperCase()}`,
      epsilon,
      predictions: {
        element_type: `ELEMENT_TYPE_${type.toUpperCase()}`,
        shape: [predictions.length, predictions[0].length],
      },
      ...(threshold === undefined ? {} : { threshold }),
    };
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await this.#call((done) => {
          const call = this.service.Audit(deadline(AUDIT_SECONDS), done);
          Readable.from(parts(header, bytes)).pipe(call);
        });
        return { request_id, ...withNumbers(answer) };
      } catch (error) {
        // Whether it was charged is not known: the same id again finds the charge, if there is one.
        const again = error instanceof Unavailable || error.reason === "LEDGER_UNAVAILABLE";
        if (!again || attempt === ATTEMPTS) throw error;
        await pause(PAUSE_MS * attempt);
      }
    }
  }

  #call(start) {
    return new Promise((resolve, reject) => {
      start((error, answer) => (error ? reject(this.#failure(error)) : resolve(answer)));
    });
  }

  /** A refusal has its reason in the trailing metadata; a call that failed on the way has none. */
  #failure(error) {
    const [carried] = error.metadata?.get("fairwall-error-bin") ?? [];
    if (carried === undefined) return new Unavailable(`no answer: ${error.details || error.message}`);
    const { reason, ...fields } = this.errors.deserialize(carried);
    const numbers = Object.entries(fields).filter(([name]) => fields[`_${name}`] === name);
    return new Refused(reason.replace("REASON_", ""), error.details, Object.fromEntries(numbers));
  }
}

function load(descriptors) {
  if (descriptors !== undefined) return loader.loadFileDescriptorSetFromBuffer(readFileSync(descriptors), NAMES);
  const files = ["fairwall/compliance/v1/audit_service.proto", "fairwall/wire/v1/error.proto"];
  return loader.loadSync(files, { ...NAMES, includeDirs: [PROTOS] });
}

/** The deployment that a developer's certificate is of: its URI is fairwall://<deployment>/developer/<name>. */
function deploymentOf(certificate) {
  const names = new X509Certificate(certificate).subjectAltName ?? "";
  const found = names.match(/URI:fairwall:\/\/([^/]+)\/developer/);
  if (found === null) throw new Error("certificate.pem: names no developer of a deployment");
  return found[1];
}

function deadline(seconds) {
  return { deadline: Date.now() + 1000 * seconds };
}

/** Row after row, little-endian. */
function inRows(predictions, { size, holds, write }) {
  const [models, people] = [predictions.length, predictions[0]?.length ?? 0];
  if (people === 0 || !predictions.every((row) => row.length === people && row.every(holds))) {
    throw new RangeError("predictions have one row a model and one column a person, in [0, 1], as uint8 0 or 1");
  }
  const bytes = new Uint8Array(models * people * size);
  const view = new DataView(bytes.buffer);
  predictions.flat().forEach((h, number) => write(view, number * size, h));
  return bytes;
}

function* parts(header, bytes) {
  yield { header };
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
    yield { predictions_chunk: bytes.subarray(start, start + CHUNK_BYTES) };
  }
}

/** Arrays as numbers; fields that were not sent are left out. */
function withNumbers(answer) {
  const { gaps, low, high, likely_low, likely_high, probability_above, epsilon_charged, epsilon_remaining, epsilon_remaining_now } = answer;
  return {
    gaps: numbersOf(gaps),
    low: numbersOf(low),
    high: numbersOf(high),
    likely_low: numbersOf(likely_low),
    likely_high: numbersOf(likely_high),
    ...(probability_above === null ? {} : { probability_above: numbersOf(probability_above) }),
    epsilon_charged,
    epsilon_remaining,
    // Told where it is another number alone: in the answer to a repeat.
    epsilon_remaining_now: answer._epsilon_remaining_now === undefined ? epsilon_remaining : epsilon_remaining_now,
  };
}

function numbersOf({ header, data }) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  return Array.from({ length: Number(header.shape[0]) }, (_, at) => view.getFloat64(8 * at, true));
}
