import { get } from "../api.js";
import { fill, h } from "../dom.js";
import { age, bytes, counted, percent, quantity } from "../format.js";
import { podAddress } from "../routes.js";
import { table } from "../table.js";
import { taintText } from "./data.js";

/** What panels show, so that they are made anew only if that has changed. @type {WeakMap<HTMLElement, string>} */
const SHOWN = new WeakMap();

/**
 * Show a node beside the map; what has the focus keeps it.
 * @param {HTMLElement} root
 * @param {string} node
 * @param {{signal: AbortSignal, refused: {pod: string, plugins: string[]} | null, close: () => void, isCurrent: () => boolean}} options
 */
export async function drawPanel(root, node, { signal, refused, close, isCurrent }) {
  const { items } = await get("debug/cache", { node, pods: true }, { signal });
  if (!isCurrent()) return;
  const heading = [
    h("h2", { tabindex: "-1" }, node),
    h("button", { type: "button", class: "small", "aria-label": `Close ${node}`, onclick: close }, "Close"),
  ];
  const found = items[0];
  const key = JSON.stringify([node, found?.generation, found?.nominated, found?.details.conditions, refused]);
  if (SHOWN.get(root) === key || isTyping(root)) return;
  SHOWN.set(root, key);
  const focused = root.contains(document.activeElement) && identity(document.activeElement);
  const open = new Set([...root.querySelectorAll("details[open]")].map((each) => each.className));
  fill(
    root,
    h("div", { class: "panel-head" }, heading),
    found ? [facts(found), refused && refusals(refused), room(found.resources), marks(found), lists(found, open)] : h("p", { class: "state" }, "The scheduler has no such node."),
  );
  if (focused) focusable(root).find((each) => identity(each) === focused)?.focus();
}

/** @param {HTMLElement} root @returns {HTMLElement[]} */
const focusable = (root) => [...root.querySelectorAll("h2[tabindex], a, button, summary")];
const identity = (element) => `${element?.tagName} ${element?.textContent}`;
const isTyping = (root) => document.activeElement instanceof HTMLInputElement && root.contains(document.activeElement);

function facts({ zone, region, unschedulable, nominated, assumed }) {
  const words = [
    zone && `zone ${zone}`,
    region && `region ${region}`,
    unschedulable && "unschedulable",
    assumed.length && `${counted(assumed.length, "pod")} being bound`,
  ].filter(Boolean);
  return [
    words.length > 0 && h("p", { class: "muted" }, words.join(", ")),
    nominated.length > 0 && h("p", {}, "Room is kept for ", nominated.map((pod, i) => [i > 0 && ", ", podLink(pod)])),
  ];
}

function refusals({ pod, plugins }) {
  if (!plugins.length) return h("p", {}, h("span", { class: "good" }, "No filter rejects "), podLink(pod));
  return h("p", {}, podLink(pod), " is rejected by ", h("span", { class: "bad" }, plugins.join(", ")));
}

function room(resources) {
  const rows = Object.entries(resources).filter(([, { allocatable, requested }]) => allocatable || requested);
  return h(
    "section",
    {},
    h("h3", {}, "Room"),
    h("ul", { class: "room" }, rows.map(([name, amounts]) => bar(name, amounts))),
  );
}

function bar(name, { allocatable, requested, free }) {
  const share = allocatable > 0 ? Math.min(requested / allocatable, 1) : 1;
  return h(
    "li",
    {},
    h("span", { class: "label" }, name),
    h("span", { class: "number" }, `${quantity(name, free)} free of ${quantity(name, allocatable)}`),
    h("span", { class: "bar", "aria-hidden": "true" }, h("span", { class: free < 0 && "over", style: { width: `${100 * share}%` } })),
    h("span", { class: "number muted" }, `${percent(requested, allocatable)} requested`),
  );
}

function marks({ taints }) {
  if (!taints.length) return null;
  return h("section", {}, h("h3", {}, "Taints"), h("ul", {}, taints.map((taint) => h("li", {}, h("code", {}, taintText(taint))))));
}

function lists({ pods, details: { labels, conditions, images } }, open) {
  const pairs = (entries) => h("dl", {}, entries.map(([key, value]) => h("div", {}, h("dt", {}, key), h("dd", {}, value))));
  const part = (name, title, content) => h("details", { class: name, open: open.has(name) }, h("summary", {}, title), content);
  return [
    podTable(pods),
    part("conditions", counted(conditions.length, "condition"), pairs(conditions.map(({ type, status, reason }) => [type, reason ? `${status} (${reason})` : status]))),
    part("labels", counted(Object.keys(labels).length, "label"), pairs(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))),
    part("images", counted(images.length, "image"), pairs(images.map(({ names, sizeBytes }) => [names.at(-1) ?? "without a name", bytes(sizeBytes)]))),
  ];
}

function podTable(pods) {
  return table({
    caption: counted(pods.length, "pod"),
    rows: pods,
    empty: "No pods.",
    search: pods.length > 10,
    columns: [
      { name: "pod", title: "Pod", value: ({ pod }) => pod, cell: ({ pod }) => podLink(pod) },
      { name: "state", title: "State", nowrap: true, value: ({ assumed, assumedSeconds }) => (assumed ? `being bound${assumedSeconds === null ? "" : ` for ${age(assumedSeconds)}`}` : "bound") },
    ],
  });
}

const podLink = (pod) => h("a", { href: podAddress(pod) }, pod);
