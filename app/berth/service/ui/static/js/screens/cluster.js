import { ApiError, url } from "../api.js";
import { byFilters, byTaints, byUse } from "../cluster/coloring.js";
import { controls, FILTERS, NO_GROUPS, TAINTS } from "../cluster/controls.js";
import { Feed, MARKS, Nodes } from "../cluster/data.js";
import { hasHeadings } from "../cluster/layout.js";
import { drawLegend } from "../cluster/legend.js";
import { ClusterMap } from "../cluster/map.js";
import { drawPanel } from "../cluster/panel.js";
import { ALL } from "../cluster/view.js";
import { fill, h } from "../dom.js";
import { count, counted } from "../format.js";
import { repeat } from "../repeat.js";
import { address, setQuery } from "../routes.js";
import { sources } from "../sources.js";

const SECONDS = 3;
const LABELS_EVERY = 20; // times as rarely
const MOST_LOOKS = 4;
const REST_MILLISECONDS = 1100; // answers are not made more often than once a second
const ADDRESS_MILLISECONDS = 250;
const NARROW = "(max-width: 900px)"; // as in cluster.css
const ZONE = "topology.kubernetes.io/zone";

/** All nodes as cells. @param {import("../main.js").View} view @param {import("../routes.js").Route} route */
export async function show(view, route) {
  const screen = new ClusterScreen(view, route.query);
  await screen.start();
  return { update: ({ query }) => screen.moveTo(query) };
}

class ClusterScreen {
  constructor(view, query) {
    this.root = view.root;
    this.signal = view.signal;
    this.feeds = new Map();
    this.rounds = 0;
    this.readings = 0;
    this.labels = [];
    this.nodes = /** @type {Nodes | null} */ (null); // those that are shown
    this.latest = /** @type {Nodes | null} */ (null);
    this.isHere = false;
    this.map = new ClusterMap(this.signal, {
      open: (node, byKey) => this.open(this.nodes?.names[node] ?? "", byKey),
      close: () => this.open("", true),
      viewed: (seen) => this.remember(seen),
      describe: (node) => this.describe(node),
    });
    const reactions = {
      choose: (changes) => this.choose(changes),
      zoom: (by) => this.map.zoom(by),
      fit: () => this.map.fit(),
    };
    this.controls = controls(reactions, this.signal);
    this.notice = h("p", { class: "warn", role: "status" });
    this.legend = h("aside", { class: "legend card", "aria-label": "Legend" });
    this.panel = h("aside", { class: "panel card", "aria-label": "Node", hidden: true });
    this.foot = h("div");
    this.read(query);
    addEventListener("themechange", () => this.map.recolor(), { signal: this.signal });
    this.signal.addEventListener("abort", () => clearTimeout(this.timer));
  }

  async start() {
    await repeat(SECONDS, this.signal, () => this.refresh());
  }

  /** Take over an address. */
  read(query) {
    this.chosen = {
      group: query.get("group") ?? "",
      color: query.get("color") ?? "",
      pod: query.get("pod") ?? "",
      search: query.get("search") ?? "",
    };
    this.node = query.get("node") ?? "";
    const number = (name, otherwise) => Number(query.get(name) ?? otherwise) || otherwise;
    this.map.view = { zoom: Math.max(number("zoom", 1), 1), x: number("x", ALL.x), y: number("y", ALL.y) };
  }

  moveTo(query) {
    this.read(query);
    this.revealed = this.composed = "";
    this.refresh().catch((error) => this.say([error.message]));
  }

  choose(changes) {
    Object.assign(this.chosen, changes);
    setQuery(changes);
    if ("search" in changes) return this.compose();
    return this.refresh().catch((error) => !this.signal.aborted && this.say([error.message]));
  }

  open(node, byKey) {
    this.node = node;
    setQuery({ node });
    this.panel.hidden = !node;
    this.map.choose(this.nodes?.index.get(node) ?? -1);
    if (node && !byKey && matchMedia(NARROW).matches) this.panel.scrollIntoView({ block: "nearest" });
    if (node) this.drawPanel(byKey).catch((error) => !this.signal.aborted && this.say([error.message]));
    else if (byKey) this.map.canvas.focus();
  }

  /** The view goes into the address when it has come to rest: browsers allow few changes a second. */
  remember({ zoom, x, y }) {
    clearTimeout(this.timer);
    const rounded = (value) => (zoom > 1 ? Number(value.toFixed(4)) : null);
    this.timer = setTimeout(() => setQuery({ zoom: rounded(zoom), x: rounded(x), y: rounded(y) }), ADDRESS_MILLISECONDS);
  }

  get group() {
    const { group } = this.chosen;
    return group || (this.labels.some(({ key }) => key === ZONE) ? ZONE : NO_GROUPS);
  }

  get groupBy() {
    return this.group === NO_GROUPS ? "" : this.group;
  }

  get color() {
    return this.chosen.color || (this.chosen.pod ? FILTERS : "cpu");
  }

  feed(path, params) {
    const key = JSON.stringify([path, params]);
    let found = this.feeds.get(path);
    if (found?.key !== key) this.feeds.set(path, (found = { key, feed: new Feed(path, params) }));
    return found.feed;
  }

  /** Ask what may have changed, and draw it if it has. */
  async refresh() {
    const reading = ++this.readings;
    if (this.rounds++ % LABELS_EVERY === 0) {
      this.labels = (await this.feed("debug/cluster/labels", {}).read(this.signal)).items;
    }
    const notices = [];
    const told = await this.tell(notices);
    if (reading !== this.readings || !told) return; // something else was chosen meanwhile
    const isNew = this.told !== told.of || this.nodes !== told.nodes;
    Object.assign(this, { told: told.of, nodes: told.nodes, coloring: isNew ? told.color() : this.coloring });
    if (!this.isHere) this.appear();
    const groups = told.nodes.groups.length;
    if (!told.nodes.count) notices.push("There are no nodes.");
    if (groups > 1 && !hasHeadings(groups)) notices.push(`${count(groups)} groups are too many for headings.`);
    this.say(notices);
    if (isNew || this.composed !== JSON.stringify(this.chosen)) this.compose();
    if (this.node) await this.drawPanel(false);
  }

  /**
   * Return the nodes, what they are coloured by, and how; null if nodes come and go all the time, so
   * that the two answers are never about the same ones.
   */
  async tell(notices) {
    let of = await this.colored(notices);
    for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
      if (looks > 1) await new Promise((rested) => setTimeout(rested, REST_MILLISECONDS));
      if (!this.latest || this.latest.groupBy !== this.groupBy || !of || of.version !== this.latest.version) {
        [of] = await Promise.all([looks ? this.colored([]) : of, this.readNodes(looks ? [] : notices)]);
      }
      const nodes = /** @type {Nodes} */ (this.latest);
      if (!of || of.version === nodes.version) return { of, nodes, color: () => this.how(nodes, of) };
    }
    return null;
  }

  /** Return what the nodes are coloured by; null if nothing beside themselves is needed. */
  async colored(notices) {
    const { pod } = this.chosen;
    if (this.color === TAINTS) return null;
    if (this.color !== FILTERS) return this.known("debug/cluster/use", { resource: this.color }, notices);
    if (pod) return this.known("debug/cluster/filters", { pod }, notices);
    notices.push("Choose a pending pod to see which filters reject it.");
    return null;
  }

  how(nodes, of) {
    if (!of) return byTaints(nodes);
    return of.pluginSet ? byFilters(nodes, of) : byUse(nodes, of);
  }

  async readNodes(notices) {
    const told =
      (await this.known("debug/cluster", { groupBy: this.groupBy }, notices)) ??
      (await this.feed("debug/cluster", {}).read(this.signal));
    if (this.latestTold !== told) [this.latestTold, this.latest] = [told, new Nodes(told, this.nodes)];
  }

  /** Return an answer; null if there is no such thing, which is then told. */
  async known(path, params, notices) {
    try {
      return await this.feed(path, params).read(this.signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      notices.push(error.reason);
      return null;
    }
  }

  appear() {
    this.isHere = true;
    fill(
      this.root,
      this.controls,
      this.notice,
      h("div", { class: "map-parts" }, this.map.root, h("div", { class: "map-side" }, this.panel, this.legend)),
      this.foot,
    );
    this.map.resized();
  }

  say(notices) {
    const text = notices.join(" ");
    if (this.notice.textContent !== text) fill(this.notice, text);
  }

  /** Draw the map, the legend and the controls. */
  compose() {
    const { nodes, coloring, chosen } = this;
    if (!nodes || !coloring) return;
    const isFound = chosen.search ? searched(nodes, chosen.search) : null;
    const numFound = isFound ? isFound.reduce((sum, each) => sum + each, 0) : 0;
    const isHeaded = hasHeadings(nodes.groups.length);
    const headings = isHeaded ? nodes.groups.map(({ value, nodes: some }) => heading(value, some, coloring)) : [];
    this.map.set({ nodes, coloring, headings, isFound, numFound });
    this.panel.hidden = !this.node;
    if (this.revealed !== this.node) {
      this.revealed = this.node;
      this.map.choose(nodes.index.get(this.node) ?? -1);
    }
    drawLegend(this.legend, coloring, nodes.marks);
    const { resources } = nodes;
    this.controls.update(
      { ...chosen, group: this.group, color: this.color },
      { labels: this.labels, resources, nodes: nodes.count, found: isFound && numFound },
    );
    if (this.composed === JSON.stringify(chosen)) return;
    this.composed = JSON.stringify(chosen); // what can have the focus is not made anew without need
    fill(this.foot, h("p", {}, h("a", { href: address("nodes", [], { name: chosen.search }) }, "The nodes as a table")), this.sources());
  }

  sources() {
    const { pod } = this.chosen;
    if (this.color === FILTERS && pod) {
      return sources({ json: url("debug/cluster/filters", { pod }), command: ["berth", "explain", "--nodes", "all", "--", pod] });
    }
    const { groupBy } = this;
    const json = this.color === TAINTS ? url("debug/cluster", { groupBy }) : url("debug/cluster/use", { resource: this.color });
    return sources({ json, command: ["kubectl", "get", "nodes", ...(groupBy ? ["-L", groupBy] : [])] });
  }

  async drawPanel(byKey) {
    const { node, signal } = this;
    const refused = this.refusals(node);
    const close = () => this.open("", true);
    await drawPanel(this.panel, node, { signal, refused, close, isCurrent: () => this.node === node });
    if (byKey) /** @type {HTMLElement | null} */ (this.panel.querySelector("h2"))?.focus();
  }

  /** By which filters the chosen pod is rejected on a node; null if no pod is chosen. */
  refusals(name) {
    const { told, nodes } = this;
    const node = nodes?.index.get(name);
    if (!told?.pluginSet || node === undefined) return null;
    return { pod: told.pod, plugins: told.pluginSets[told.pluginSet[node]] };
  }

  /** As in "node-17, zone b, cpu 82% requested, 3 taints". */
  describe(node) {
    const { nodes, coloring } = this;
    if (!nodes || !coloring) return "";
    const key = nodes.groupBy.split("/").at(-1);
    const value = nodes.groupOf(node);
    const taints = nodes.taintSets[nodes.taintSet[node]];
    return [
      nodes.names[node],
      key && (value === null ? `no ${key}` : `${key} ${value}`),
      coloring.describe(node),
      nodes.isNotReady(node) && "not ready",
      (nodes.marks[node] & MARKS.UNSCHEDULABLE) > 0 && "unschedulable",
      taints.length > 0 && (this.color === TAINTS ? taints.join(", ") : counted(taints.length, "taint")),
    ]
      .filter(Boolean)
      .join(", ");
  }
}

function searched(nodes, text) {
  const lower = text.toLowerCase();
  return Uint8Array.from(nodes.names, (name) => (name.toLowerCase().includes(lower) ? 1 : 0));
}

function heading(value, nodes, coloring) {
  const sums = coloring.sums(nodes);
  return { label: value ?? "without the label", sums: [`${counted(nodes.length, "node")}, ${sums[0]}`, ...sums] };
}
