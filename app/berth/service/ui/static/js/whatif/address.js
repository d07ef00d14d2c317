import { pack, unpack } from "./packing.js";
import { KINDS, asked } from "./questions.js";
import { NOTHING, weightList } from "./state.js";

/** @typedef {import("./state.js").State} State */

const TEXTS = ["ask", "zone", "among", "find", "replicas", "pod", "namespace", "cpu", "memory", "resources", "selector", "priority", "add", "count",
  "remove", "cordon", "preset", "profile"];
const NUMBERS = ["replicas", "count", "priority"];
const FLAGS = ["pending", "preemption", "repack"];
const SOURCES = ["none", "like", "text", "size"];

/**
 * Return what the query of an address says. Throws an Error for a manifest that is damaged.
 * @param {URLSearchParams} query
 * @returns {Promise<State>}
 */
export async function fromQuery(query) {
  const state = { ...NOTHING };
  for (const name of TEXTS) state[name] = query.get(name) ?? "";
  for (const name of NUMBERS) if (!/^-?\d{1,10}$/.test(state[name])) state[name] = "";
  for (const name of FLAGS) state[name] = query.has(name) ? query.get(name) === "yes" : NOTHING[name];
  if (!Object.hasOwn(KINDS, state.ask)) state.ask = query.size ? "other" : "";
  const source = query.get("source") ?? "";
  if (SOURCES.includes(source)) state.source = /** @type {State["source"]} */ (source);
  state.weights = weightsOf(query.get("weights") ?? "");
  const packed = query.get("text");
  if (packed) state.text = await unpack(packed);
  return state;
}

/**
 * Return the query that says *state*; null for what goes without saying.
 * @param {State} state
 * @returns {Promise<Record<string, string | null>>}
 */
export async function toQuery(state) {
  const { fixed } = KINDS[state.ask];
  const said = { ...asked(state), ...Object.fromEntries(Object.keys(fixed).map((name) => [name, NOTHING[name]])) };
  const query = {};
  for (const name of TEXTS) query[name] = said[name] || null;
  for (const name of FLAGS) query[name] = said[name] === NOTHING[name] ? null : said[name] ? "yes" : "no";
  query.source = said.source === NOTHING.source ? null : said.source;
  query.weights = weightList(said.weights).join(",") || null;
  query.text = said.text ? await pack(said.text) : null;
  return query;
}

function weightsOf(text) {
  const weights = {};
  for (const [, profile, plugin, weight] of text.matchAll(/([^,/=]+)\/([^,/=]+)=(\d{1,10})/g)) {
    weights[profile] = { ...weights[profile], [plugin]: Number(weight) };
  }
  return weights;
}
