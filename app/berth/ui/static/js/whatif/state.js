import { pack, unpack } from "./packing.js";

/**
 * What the form says. Texts are as they were typed; what is empty is not asked for.
 * @typedef {object} State
 * @property {"none" | "like" | "text" | "size"} source which pods are added
 * @property {string} replicas
 * @property {string} pod namespace/name of the pod that is copied
 * @property {string} text manifests
 * @property {string} namespace
 * @property {string} cpu
 * @property {string} memory
 * @property {string} resources others, as in nvidia.com/gpu=1,example.com/licence=2
 * @property {string} selector node labels, as in pool=spot,zone=a
 * @property {string} priority
 * @property {string} add name of the node that is copied
 * @property {string} count
 * @property {string} remove names and patterns of nodes, with commas
 * @property {string} cordon
 * @property {string} preset
 * @property {string} profile
 * @property {Record<string, Record<string, number>>} weights by profile, then by plugin
 * @property {boolean} pending whether waiting pods are placed
 * @property {boolean} preemption
 * @property {boolean} repack
 * @property {boolean} run whether it was asked
 */

/** @type {State} */
export const NOTHING = {
  source: "like", replicas: "", pod: "", text: "", namespace: "", cpu: "", memory: "", resources: "", selector: "",
  priority: "", add: "", count: "", remove: "", cordon: "", preset: "", profile: "", weights: {}, pending: true,
  preemption: false, repack: false, run: false,
};

const TEXTS = ["replicas", "pod", "namespace", "cpu", "memory", "resources", "selector", "priority", "add", "count",
  "remove", "cordon", "preset", "profile"];
const NUMBERS = ["replicas", "count", "priority"];
const FLAGS = ["pending", "preemption", "repack", "run"];
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
  const query = {};
  for (const name of TEXTS) query[name] = state[name] || null;
  for (const name of FLAGS) query[name] = state[name] === NOTHING[name] ? null : state[name] ? "yes" : "no";
  query.source = state.source === NOTHING.source ? null : state.source;
  query.weights = weightList(state.weights).join(",") || null;
  query.text = state.text ? await pack(state.text) : null;
  return query;
}

/** As in `default-scheduler/NodeResourcesFit=5`: the same as for `--weight`. @returns {string[]} */
export const weightList = (weights) =>
  Object.entries(weights).flatMap(([profile, plugins]) =>
    Object.entries(plugins).map(([plugin, weight]) => `${profile}/${plugin}=${weight}`),
  );

function weightsOf(text) {
  const weights = {};
  for (const [, profile, plugin, weight] of text.matchAll(/([^,/=]+)\/([^,/=]+)=(\d{1,10})/g)) {
    weights[profile] = { ...weights[profile], [plugin]: Number(weight) };
  }
  return weights;
}
