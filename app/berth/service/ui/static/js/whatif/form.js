import { fill, h } from "../dom.js";
import { KINDS, choose } from "./questions.js";
import { weightSliders } from "./weights.js";

/** @typedef {import("./state.js").State} State */

const SOURCES = { like: "Copies of a pod", text: "Manifests", size: "By size", none: "None" };
/** Controls whose value decides which others there are. */
const DECISIVE = ["source", "preset", "profile"];

/**
 * Return the form; it keeps *state* as it says. `refuse(field, reason)` shows what is wrong with a
 * field, or with all of it when there is no such field, and `warn` what goes without it.
 * @param {State} state
 * @param {{config: any, zones: string[], nodes: string[], pods: string[]}} known what there is to choose from
 * @param {{onchange: () => void, onsubmit: () => void, oncancel: () => void}} listeners
 */
export function form(state, known, { onchange, onsubmit, oncancel }) {
  const weights = weightSliders(state, known.config, onchange);
  const sources = h("div", { class: "fields" });
  const parts = h("div", { class: "parts" });
  const general = h("p", { class: "bad", role: "alert", id: "general-error" });
  const submit = h("button", { type: "submit", class: "primary" }, "Simulate");
  const cancel = h("button", { type: "button", onclick: oncancel, hidden: true }, "Cancel");
  const root = h(
    "form",
    { class: "ask", novalidate: true, oninput: read, onsubmit: submitted, "aria-label": "What if" },
    kinds(state),
    parts,
    general,
    h("p", { class: "buttons" }, submit, cancel),
    suggestions("known-nodes", known.nodes),
    suggestions("known-pods", known.pods),
  );

  /** Show the fields of the question, and no others. */
  function draw() {
    const { fields } = KINDS[state.ask];
    const has = (...names) => names.some((name) => fields.includes(name));
    const compares = has("preset") && h("fieldset", {}, h("legend", {}, "Compare with another configuration"), deciders(state, known.config), weights.root, errorOf("weights"));
    fill(
      parts,
      has("zone") && zoneField(state, known.zones),
      has("among") && fieldset("Nodes", field(state, "among", "Among these nodes only", { list: "known-nodes", placeholder: "all of them; or node-1, spot-*", size: "wide" })),
      has("source") ? h("fieldset", {}, h("legend", {}, "Pods"), radios(state), sources) : has("text") && h("fieldset", {}, h("legend", {}, "Manifests"), sources),
      has("find") && fieldset("Nodes", field(state, "find", "Nodes like", { list: "known-nodes", placeholder: "a node", size: "wide" })),
      has("add") && nodeFields(state),
      compares,
      optionFields(state, fields),
    );
    fill(sources, sourceFields(state));
    weights.draw();
  }

  function read(event) {
    const { name, type, value, checked } = event.target;
    if (!(name in state)) return;
    state[name] = type === "checkbox" ? checked : value;
    clear(root, name);
    if (name === "ask") {
      choose(state, value, known);
      draw();
    }
    if (name === "source") fill(sources, sourceFields(state));
    if (DECISIVE.includes(name)) weights.draw();
    onchange();
  }

  function submitted(event) {
    event.preventDefault();
    for (const field of root.querySelectorAll("[aria-invalid]")) clear(root, field.getAttribute("name"));
    fill(general);
    onsubmit();
  }

  draw();
  return Object.assign(root, {
    /** @param {string | null} field @param {string} reason */
    refuse(field, reason) {
      const control = /** @type {HTMLElement | null} */ (field && root.querySelector(`[name="${field}"]`));
      const error = field ? root.querySelector(`#${field}-error`) : null;
      fill(error ?? general, reason);
      control?.setAttribute("aria-invalid", "true");
      if (field === "weights") weights.root.setAttribute("open", "");
      control?.focus();
    },
    /** @param {string} field @param {string} text */
    warn(field, text) {
      fill(root.querySelector(`#${field}-error`) ?? general, text);
    },
    /** @param {boolean} isBusy */
    busy(isBusy) {
      submit.toggleAttribute("disabled", isBusy);
      cancel.toggleAttribute("hidden", !isBusy);
    },
  });
}

/** Take back what was said about a field. */
function clear(root, name) {
  root.querySelector(`[name="${name}"]`)?.removeAttribute("aria-invalid");
  const error = root.querySelector(`#${name}-error`);
  if (error) fill(error);
}

function radios(state) {
  return h(
    "div",
    { class: "choices", role: "radiogroup", "aria-label": "Where new pods come from" },
    Object.entries(SOURCES).map(([value, title]) =>
      h("label", {}, h("input", { type: "radio", name: "source", value, checked: state.source === value }), title),
    ),
  );
}

/** What there is to ask, and an example of each. */
function kinds(state) {
  return h(
    "fieldset",
    { class: "kinds" },
    h("legend", {}, "Question"),
    Object.entries(KINDS).map(([value, { title, hint }]) =>
      h("label", { class: "kind" }, h("input", { type: "radio", name: "ask", value, checked: state.ask === value, "aria-labelledby": `kind-${value}`, "aria-describedby": `hint-${value}` }),
        h("strong", { id: `kind-${value}` }, title), h("span", { class: "muted", id: `hint-${value}` }, hint)),
    ),
  );
}

function zoneField(state, zones) {
  const names = zones.includes(state.zone) || !state.zone ? zones : [...zones, state.zone];
  if (!names.length) return h("p", { class: "muted" }, "No node has the label topology.kubernetes.io/zone.");
  return fieldset("Zone", choice(state, "zone", "The zone that fails", "none", names));
}

function sourceFields(state) {
  if (state.ask === "release") return [textArea(state), replicasField(state, "as they say")];
  const replicas = replicasField(state, state.source === "text" ? "as they say" : "1");
  switch (state.source) {
    case "like":
      return [field(state, "pod", "Pod to copy", { list: "known-pods", placeholder: "NAMESPACE/NAME", size: "wide" }), replicas];
    case "text":
      return [textArea(state), replicas];
    case "size":
      return [
        replicas,
        field(state, "cpu", "CPU", { placeholder: "500m", size: "third" }),
        field(state, "memory", "Memory", { placeholder: "1Gi", size: "third" }),
        field(state, "resources", "Other resources", { placeholder: "nvidia.com/gpu=1", size: "wide" }),
        field(state, "selector", "Node selector", { placeholder: "pool=spot,zone=a", size: "wide" }),
        field(state, "priority", "Priority", { type: "number", placeholder: "0" }),
        field(state, "namespace", "Namespace", { placeholder: "default" }),
      ];
    default:
      return [];
  }
}

const replicasField = (state, placeholder) =>
  field(state, "replicas", "Replicas", { type: "number", min: 0, max: 20000, placeholder, size: "third" });

const fieldset = (title, ...fields) => h("fieldset", {}, h("legend", {}, title), h("div", { class: "fields" }, fields));

function nodeFields(state) {
  return fieldset(
    "Nodes",
    field(state, "add", "Add copies of", { list: "known-nodes", placeholder: "a node" }),
    field(state, "count", "How many", { type: "number", min: 1, max: 10000, placeholder: "1" }),
    field(state, "remove", "Drain and remove", { list: "known-nodes", placeholder: "node-1, spot-*", size: "wide" }),
    field(state, "cordon", "Cordon", { list: "known-nodes", placeholder: "node-1, spot-*", size: "wide" }),
  );
}

function deciders(state, config) {
  const profiles = Object.keys(state.preset ? config.presets[state.preset] ?? {} : config.scoreWeights);
  return h(
    "div",
    { class: "fields" },
    choice(state, "preset", "Preset", "as configured", Object.keys(config.presets)),
    profiles.length > 1 || state.profile ? choice(state, "profile", "Profile", "that of each pod", profiles) : null,
  );
}

const OPTIONS = { pending: "Place pods that wait now, too", preemption: "Allow preemption", repack: "Place running pods again" };

function optionFields(state, fields) {
  const names = Object.keys(OPTIONS).filter((name) => fields.includes(name));
  if (!names.length) return null;
  const option = (name) => h("label", {}, h("input", { type: "checkbox", name, checked: state[name] }), OPTIONS[name]);
  return h("fieldset", { class: "options" }, h("legend", {}, "Options"), names.map(option), errorOf("repack"));
}

function field(state, name, title, { size = "", ...attributes } = {}) {
  const control = h("input", { id: name, name, value: state[name], autocomplete: "off", spellcheck: "false", "aria-describedby": `${name}-error`, ...attributes });
  return h("div", { class: size || null }, h("label", { for: name }, title), control, errorOf(name));
}

function textArea(state) {
  const control = h("textarea", { id: "text", name: "text", rows: 12, spellcheck: "false", "aria-describedby": "text-error", placeholder: "YAML or JSON, as for kubectl apply" });
  /** @type {HTMLTextAreaElement} */ (control).value = state.text;
  return h("div", { class: "wide" }, h("label", { for: "text" }, "YAML or JSON"), control, errorOf("text"));
}

function choice(state, name, title, otherwise, names) {
  const options = [["", otherwise], ...names.map((each) => [each, each])];
  const control = h(
    "select",
    { id: name, name, "aria-describedby": `${name}-error` },
    options.map(([value, text]) => h("option", { value, selected: state[name] === value }, text)),
  );
  return h("div", {}, h("label", { for: name }, title), control, errorOf(name));
}

const errorOf = (name) => h("p", { id: `${name}-error`, class: "bad" });

const suggestions = (id, names) => h("datalist", { id }, names.map((value) => h("option", { value })));
