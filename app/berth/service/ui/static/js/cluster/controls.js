import { get } from "../api.js";
import { fill, h } from "../dom.js";
import { count } from "../format.js";

/** In the address: all nodes in one group. No label key begins with this. */
export const NO_GROUPS = "-";
/** What cells are coloured by, beside the names of resources. */
export const TAINTS = "taints";
export const FILTERS = "filters";

const FIRST_KEYS = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname"];
const MOST_PODS = 200;

/**
 * @typedef {object} Choices
 * @property {string} group label key, or NO_GROUPS
 * @property {string} color name of a resource, TAINTS or FILTERS
 * @property {string} pod as namespace/name
 * @property {string} search
 */

/**
 * Return the controls above the map; `update` shows what is chosen and what there is to choose from.
 * @param {object} reactions
 * @param {(changes: Partial<Choices>) => void} reactions.choose
 * @param {(by: number) => void} reactions.zoom
 * @param {() => void} reactions.fit
 * @param {AbortSignal} signal
 */
export function controls({ choose, zoom, fit }, signal) {
  const group = select("group", (value) => choose({ group: value }));
  const color = select("color", (value) => choose({ color: value }));
  const pods = h("datalist", { id: "pending-pods" });
  const pod = h("input", {
    id: "pod", list: "pending-pods", placeholder: "namespace/name", autocomplete: "off", spellcheck: "false",
    onfocus: () => offerPods(pods, signal),
    onchange: ({ target }) => choose({ pod: target.value.trim(), color: target.value.trim() ? FILTERS : "" }),
  }); // prettier-ignore
  const search = h("input", {
    id: "search", type: "search", placeholder: "Name of a node",
    oninput: ({ target }) => choose({ search: target.value.trim() }),
  }); // prettier-ignore
  const found = h("span", { role: "status" });
  const root = h(
    "form",
    { class: "map-controls", onsubmit: (event) => event.preventDefault() },
    field("group", "Group by", group),
    field("color", "Colour by", color),
    field("pod", "Pending pod", pod, pods),
    field("search", ["Search", found], search),
    h("div", { class: "zoom", role: "group", "aria-label": "Zoom" },
      button("−", "Zoom out", () => zoom(1 / 1.5)),
      button("+", "Zoom in", () => zoom(1.5)),
      button("All", "Show all nodes", fit)),
  ); // prettier-ignore
  const values = { group, color, pod, search };
  return Object.assign(root, {
    /** @param {Choices} chosen @param {{labels: any[], resources: string[], nodes: number, found: number | null}} known */
    update(chosen, known) {
      fillSelect(group, groupOptions(known.labels, known.nodes), chosen.group);
      fillSelect(color, colorOptions(known.resources), chosen.color);
      for (const [name, input] of Object.entries(values)) {
        const field = /** @type {HTMLInputElement} */ (input);
        if (document.activeElement !== field) field.value = chosen[name];
      }
      fill(found, known.found === null ? "" : `: ${count(known.found)} found`);
    },
  });
}

async function offerPods(list, signal) {
  try {
    const { items } = await get("debug/queue", { limit: MOST_PODS }, { signal });
    fill(list, items.map(({ pod, queue }) => h("option", { value: pod }, queue)));
  } catch {
    // A name can be typed all the same.
  }
}

const field = (id, title, ...parts) => h("div", { class: "field" }, h("label", { for: id }, title), parts);
const button = (text, label, onclick) => h("button", { type: "button", "aria-label": label, title: label, onclick }, text);
const select = (id, chosen) => h("select", { id, onchange: ({ target }) => chosen(target.value) });

function groupOptions(labels, nodes) {
  const rank = ({ key }) => (FIRST_KEYS.indexOf(key) + 1 || FIRST_KEYS.length + 1) * 2;
  const sorted = [...labels].sort((a, b) => rank(a) - rank(b) || (a.key < b.key ? -1 : 1));
  const useful = sorted.filter(({ values }) => values < nodes || nodes < 2);
  const others = sorted.filter((label) => !useful.includes(label));
  const option = ({ key, values }) => [key, `${key} (${count(values)})`];
  return [["", [[NO_GROUPS, "nothing"], ...useful.map(option)]], ["Different on every node", others.map(option)]];
}

function colorOptions(resources) {
  return [["Use of", resources.map((name) => [name, name])], ["", [[TAINTS, "taints"], [FILTERS, "filters that reject the pod"]]]];
}

/** Fill a select with groups of options, unless it has them already. */
function fillSelect(element, groups, value) {
  const chosen = groups.some(([, options]) => options.some(([name]) => name === value));
  const all = chosen ? groups : [...groups, ["", [[value, value]]]];
  const key = JSON.stringify(all);
  if (element.dataset.options !== key) {
    element.dataset.options = key;
    const option = ([name, text]) => h("option", { value: name }, text);
    fill(
      element,
      all.filter(([, options]) => options.length).map(([label, options]) => (label ? h("optgroup", { label }, options.map(option)) : options.map(option))),
    );
  }
  element.value = value;
}
