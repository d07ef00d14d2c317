import { asked } from "./questions.js";

/** @typedef {import("./state.js").State} State */

/** The label that says in which zone a node is. */
export const ZONE = "topology.kubernetes.io/zone";

/** A field of the form says something that cannot be asked. */
export class FieldError extends Error {
  /** @param {string} field @param {string} reason */
  constructor(field, reason) {
    super(reason);
    this.field = field;
  }
}

/**
 * Return the body of `POST /simulate` that asks what *state* says. Throws FieldError.
 * @param {State} state
 */
export function question(state) {
  state = asked(state);
  const body = {};
  const template = templateOf(state);
  if (template) body.templates = [template];
  if (!state.pending) body.includePending = false;
  if (state.add.trim()) body.addNodes = [{ like: state.add.trim(), count: whole(state, "count", 1) }];
  if (state.remove.trim()) body.removeNodes = { names: words(state.remove) };
  if (state.zone) body.removeNodes = { selector: inZone(state) };
  if (state.removable) body.findRemovable = { names: words(state.among) };
  if (state.find.trim()) body.findNodes = { like: state.find.trim() };
  if (state.cordon.trim()) body.cordonNodes = { names: words(state.cordon) };
  if (state.preset) body.comparePreset = state.preset;
  if (state.profile) body.compareProfile = state.profile;
  if (Object.keys(state.weights).length) body.compareWeights = state.weights;
  if (state.preemption) body.preemption = true;
  if (state.repack) body.repack = true;
  return body;
}

/** A selector for the nodes of the zone. @param {State} state */
export const inZone = ({ zone }) => `${ZONE}=${zone}`;

/** Names with commas or spaces between them. @param {string} text */
export const words = (text) => text.split(/[\s,]+/).filter(Boolean);

/** The pod of the small form. @param {State} state */
export function podOf(state) {
  const requests = {};
  if (state.cpu.trim()) requests.cpu = state.cpu.trim();
  if (state.memory.trim()) requests.memory = state.memory.trim();
  Object.assign(requests, pairs(state, "resources"));
  const spec = { containers: [{ name: "main", image: "what-if", resources: { requests } }] };
  const nodeSelector = pairs(state, "selector");
  if (Object.keys(nodeSelector).length) spec.nodeSelector = nodeSelector;
  if (state.priority.trim()) spec.priority = whole(state, "priority", 0, { least: -(2 ** 31) });
  const metadata = { name: "what-if", ...(state.namespace.trim() && { namespace: state.namespace.trim() }) };
  return { apiVersion: "v1", kind: "Pod", metadata, spec };
}

function templateOf(state) {
  const replicas = state.replicas.trim() ? { replicas: whole(state, "replicas", 1, { least: 0 }) } : {};
  if (state.source === "like" && state.pod.trim()) return { like: state.pod.trim(), ...replicas };
  if (state.source === "text" && state.text.trim()) return { text: state.text, ...replicas };
  if (state.source === "size") return { manifest: podOf(state), ...replicas };
  return null;
}

function whole(state, field, otherwise, { least = 1 } = {}) {
  const text = state[field].trim();
  if (!text) return otherwise;
  const number = Number(text);
  if (!Number.isInteger(number) || number < least) {
    throw new FieldError(field, `${text}: must be a whole number${least === 0 ? ", 0 or more" : least === 1 ? ", 1 or more" : ""}`);
  }
  return number;
}

function pairs(state, field) {
  const found = {};
  for (const word of words(state[field])) {
    const [, name, value] = /^([^=]+)=(.*)$/.exec(word) ?? [];
    if (!name) throw new FieldError(field, `${word}: must be NAME=VALUE`);
    found[name] = value;
  }
  return found;
}
