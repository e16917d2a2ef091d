// The address of what is shown: "#trial=3&m=12", "#findings", "#beside", or nothing for all trials.

export function read(hash) {
  const told = new URLSearchParams(hash.replace(/^#/, ""));
  if (told.has("trial")) return { screen: "trial", trial: told.get("trial"), message: Number(told.get("m")) || 1 };
  return { screen: ["findings", "beside"].find((name) => told.has(name)) || "trials" };
}

export function ofTrial(trial, message) {
  return `#trial=${encodeURIComponent(trial)}${message ? `&m=${message}` : ""}`;
}
