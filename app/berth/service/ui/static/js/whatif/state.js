/**
 * What the form says. Texts are as they were typed; what is empty is not asked for.
 * @typedef {object} State
 * @property {string} ask which question, as in KINDS of questions.js; "" before one is chosen
 * @property {string} zone whose nodes are removed
 * @property {boolean} removable whether to find the nodes that can go
 * @property {string} among which of them; names and patterns, all if empty
 * @property {string} find name of the node of which to find how many are needed
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
 */

/** @type {State} */
export const NOTHING = {
  ask: "", zone: "", removable: false, among: "", find: "", source: "like", replicas: "", pod: "", text: "", namespace: "", cpu: "", memory: "", resources: "", selector: "",
  priority: "", add: "", count: "", remove: "", cordon: "", preset: "", profile: "", weights: {}, pending: true,
  preemption: false, repack: false,
};

/** As in `default-scheduler/NodeResourcesFit=5`: the same as for `--weight`. @returns {string[]} */
export const weightList = (weights) =>
  Object.entries(weights).flatMap(([profile, plugins]) =>
    Object.entries(plugins).map(([plugin, weight]) => `${profile}/${plugin}=${weight}`),
  );
