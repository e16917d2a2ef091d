// The compressed blocks of the page: each is inflated when something in it is first looked at.

const KEPT = 24;
const inflated = new Map();

export function block(number) {
  if (!inflated.has(number)) {
    inflated.set(number, inflate(document.getElementById(`block-${number}`).textContent));
    if (inflated.size > KEPT) inflated.delete(inflated.keys().next().value);
  }
  return inflated.get(number);
}

export async function json(number) {
  return JSON.parse(new TextDecoder().decode(await block(number)));
}

// The bytes at a place: [block, first byte, how many].
export async function bytesAt([number, start, size]) {
  return (await block(number)).subarray(start, start + size);
}

export async function joined(places) {
  const parts = await Promise.all(places.map(bytesAt));
  if (parts.length === 1) return parts[0];
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let end = 0;
  for (const part of parts) {
    whole.set(part, end);
    end += part.length;
  }
  return whole;
}

async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
