import { NOTHING } from "./state.js";

/** @typedef {import("./state.js").State} State */

/**
 * @typedef {object} Kind of question
 * @property {string} title
 * @property {string} hint what is asked for, and what it is good for
 * @property {string[]} fields of the form that it has; the others do not count
 * @property {Partial<State>} fixed what it says without a field
 */

const SIZE = ["cpu", "memory", "resources", "selector", "priority", "namespace"];
const NEW_PODS = ["source", "replicas", "pod", "text", ...SIZE];
const CONFIGURATION = ["preset", "profile", "weights"];

/** By name in the address, in the order in which they are offered. @type {Record<string, Kind>} */
export const KINDS = {
  zone: {
    title: "What if a zone fails?",
    hint: "All its nodes are gone. Do their pods fit on the others?",
    fields: ["zone", "preemption"],
    fixed: { source: "none", pending: false },
  },
  removable: {
    title: "Which nodes can go?",
    hint: "The nodes whose pods all fit elsewhere, all of them at once.",
    fields: ["among"],
    fixed: { source: "none", pending: false, removable: true },
  },
  nodes: {
    title: "How many nodes does this need?",
    hint: "For example three times the replicas of a service, on nodes like one that you have.",
    fields: [...NEW_PODS, "find", "pending"],
    fixed: {},
  },
  release: {
    title: "Will this release fit?",
    hint: "Paste what you would apply, such as the output of helm template.",
    fields: ["text", "replicas", "pending", "preemption"],
    fixed: { source: "text" },
  },
  configuration: {
    title: "Would another configuration do better?",
    hint: "A preset or other weights decide the same. Compare how full nodes become.",
    fields: [...CONFIGURATION, "pending", "repack"],
    fixed: { source: "none" },
  },
  other: {
    title: "Something else",
    hint: "Everything at once: new pods, nodes that come and go, another configuration.",
    fields: [...NEW_PODS, "add", "count", "remove", "cordon", ...CONFIGURATION, "pending", "preemption", "repack"],
    fixed: {},
  },
};

/** Return *state* without what its question does not ask: what is not shown does not count. @param {State} state @returns {State} */
export function asked(state) {
  const { fields, fixed } = KINDS[state.ask];
  return { ...NOTHING, ...fixed, ...Object.fromEntries(fields.map((name) => [name, state[name]])), ask: state.ask };
}

/**
 * Choose a question, and fill its empty fields with an example from the cluster.
 * @param {State} state @param {{zones: string[], nodes: string[]}} known
 */
export function choose(state, ask, { zones, nodes }) {
  Object.assign(state, { ask, replicas: "", pending: ask !== "nodes" });
  if (ask === "zone") state.zone ||= zones[0] ?? "";
  if (ask === "configuration" && !state.profile && !Object.keys(state.weights).length) state.preset ||= "binpack";
  if (ask === "release") state.text ||= EXAMPLE;
  if (ask !== "nodes") return;
  state.find ||= nodes[0] ?? "";
  state.replicas = "100";
  if (state.source === "like" && !state.pod) Object.assign(state, { source: "size", cpu: "1", memory: "1Gi" });
}

/** The question that is offered first. */
export const firstAsk = ({ zones }) => (zones.length > 1 ? "zone" : "removable");

const EXAMPLE = `# An example; paste yours.
apiVersion: apps/v1
kind: Deployment
metadata: {name: example}
spec:
  replicas: 10
  selector: {matchLabels: {app: example}}
  template:
    metadata: {labels: {app: example}}
    spec:
      containers:
        - name: main
          image: example.com/main
          resources: {requests: {cpu: 500m, memory: 1Gi}}
`;
