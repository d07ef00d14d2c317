import { count, counted, percent, quantity } from "../format.js";

/**
 * What the colours of cells mean. A class has a colour and the number of its nodes; `sign` is
 * written on cells that are large enough, so that colour is not all that tells classes apart.
 *
 * @typedef {{label: string, token: string, count: number, sign: string}} Class
 * @typedef {object} Coloring
 * @property {string} title
 * @property {Class[]} classes
 * @property {Uint8Array} classOf by node
 * @property {(node: number) => string} describe what is to be told of a node
 * @property {(nodes: Int32Array) => string[]} sums what is to be told of a group; the later ones are
 * shorter
 * @property {[string, number][]} [counts] other numbers of nodes for the legend
 * @property {string} [note]
 */

const STEPS = 10;
const [OVER, NONE, NOT_READY] = [STEPS, STEPS + 1, STEPS + 2];
const TAINT_COLORS = 7;
const MOST_FAILED = 5;

/** @returns {Class} */
const of = (label, token, sign = "") => ({ label, token, count: 0, sign });

/**
 * How much of a resource is requested.
 * @param {import("./data.js").Nodes} nodes @param {any} use as `/debug/cluster/use` has it
 * @returns {Coloring}
 */
export function byUse(nodes, { resource, allocatable, requested }) {
  const classes = Array.from({ length: STEPS }, (_, i) => of(`${i * 10}–${i * 10 + 10}%`, `--ramp-${i}`));
  classes.push(of("more than allocatable", "--warn", "!"), of(`no ${resource}`, "--raised"), of("not ready", "--bad", "×"));
  const classOf = new Uint8Array(nodes.count);
  for (let i = 0; i < nodes.count; i += 1) {
    const [there, taken] = [allocatable[i], requested[i]];
    if (nodes.isNotReady(i)) classOf[i] = NOT_READY;
    else if (taken > there) classOf[i] = OVER;
    else if (!there) classOf[i] = NONE;
    else classOf[i] = Math.min(Math.floor((taken / there) * STEPS), STEPS - 1);
  }
  const amounts = (taken, there) => `${quantity(resource, taken)} of ${quantity(resource, there)}`;
  return counted_({
    title: `${resource}: requested of allocatable`,
    classes,
    classOf,
    describe: (i) =>
      allocatable[i] || requested[i]
        ? `${resource} ${percent(requested[i], allocatable[i])} requested, ${amounts(requested[i], allocatable[i])}`
        : `no ${resource}`,
    sums(group) {
      let [there, taken] = [0, 0];
      for (const i of group) [there, taken] = [there + allocatable[i], taken + requested[i]];
      return there ? [`${percent(taken, there)} of ${quantity(resource, there)}`, percent(taken, there)] : [`no ${resource}`];
    },
  });
}

/** Which taints nodes have, the most frequent sets by colours of their own. @returns {Coloring} */
export function byTaints(nodes) {
  const totals = new Uint32Array(nodes.taintSets.length);
  for (const set of nodes.taintSet) totals[set] += 1;
  const sets = [...totals.keys()].filter((set) => nodes.taintSets[set].length && totals[set]);
  sets.sort((a, b) => totals[b] - totals[a]);
  const classes = [of("no taints", "--ramp-1")];
  const classOfSet = new Uint8Array(totals.length);
  for (const [i, set] of sets.slice(0, TAINT_COLORS).entries()) {
    classOfSet[set] = classes.push(of(nodes.taintSets[set].join(", "), `--series-${i + 1}`, String(i + 1))) - 1;
  }
  if (sets.length > TAINT_COLORS) {
    const others = sets.slice(TAINT_COLORS);
    const other = classes.push(of(counted(others.length, "other set", "other sets"), "--series-8", "8")) - 1;
    for (const set of others) classOfSet[set] = other;
  }
  return counted_({
    title: "Taints",
    classes,
    classOf: Uint8Array.from(nodes.taintSet, (set) => classOfSet[set]),
    describe: () => "", // every description has the taints
    sums(group) {
      const tainted = group.filter((i) => nodes.taintSets[nodes.taintSet[i]].length).length;
      return [`${count(tainted)} tainted`];
    },
  });
}

/**
 * How many filters reject a pod.
 * @param {import("./data.js").Nodes} nodes @param {any} told as `/debug/cluster/filters` has it
 * @returns {Coloring}
 */
export function byFilters(nodes, { pod, pluginSets, pluginSet, message, numFeasible }) {
  const most = Math.min(Math.max(1, ...pluginSets.map((set) => set.length)), MOST_FAILED);
  const classes = [of("fits", "--good", "✓")];
  for (let failed = 1; failed <= most; failed += 1) {
    const label = failed < MOST_FAILED ? counted(failed, "filter rejects", "filters reject") : `${failed} filters or more reject`;
    classes.push(of(label, `--ramp-${2 * failed - 1}`, String(failed)));
  }
  const plugins = new Map();
  for (const set of pluginSet) for (const plugin of pluginSets[set]) plugins.set(plugin, (plugins.get(plugin) ?? 0) + 1);
  return counted_({
    title: `Filters that reject ${pod}`,
    classes,
    classOf: Uint8Array.from(pluginSet, (set) => Math.min(pluginSets[set].length, most)),
    describe: (i) => (pluginSets[pluginSet[i]].length ? `rejected by ${pluginSets[pluginSet[i]].join(", ")}` : `${pod} fits`),
    sums: (group) => [`${count(group.filter((i) => !pluginSets[pluginSet[i]].length).length)} fit`],
    counts: [...plugins].sort(([, a], [, b]) => b - a),
    note: message || `${pod} fits on ${counted(numFeasible, "node")}.`,
  });
}

function counted_(coloring) {
  for (const each of coloring.classOf) coloring.classes[each].count += 1;
  return coloring;
}
