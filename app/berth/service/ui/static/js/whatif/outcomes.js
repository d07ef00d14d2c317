/**
 * @typedef {object} Outcome as of `POST /simulate`
 * @property {Record<string, string>} placements
 * @property {{template: string, message: string, pods: string[], asked: boolean}[]} unplaced
 * @property {string[]} pending
 * @property {Record<string, string>} sources
 * @property {{pod: string, node: string, priority: number, preemptor: string}[]} victims
 * @property {any} before
 * @property {any} after
 * @property {any[]} nodes
 */

/** How many pods of an outcome have which fate. @param {Outcome} outcome */
export function counts(outcome) {
  const waited = new Set(outcome.pending);
  const found = { asked: 0, askedPlaced: 0, waiting: 0, waitingPlaced: 0, moved: 0, evicted: outcome.victims.length };
  for (const [pod, node] of Object.entries(outcome.placements)) {
    const kind = waited.has(pod) ? "waiting" : "asked";
    found[kind] += 1;
    found[`${kind}Placed`] += 1;
    if (pod in outcome.sources && outcome.sources[pod] !== node) found.moved += 1;
  }
  for (const { pods } of outcome.unplaced) {
    for (const pod of pods) found[waited.has(pod) ? "waiting" : "asked"] += 1;
  }
  return found;
}

/**
 * Return the pods without a node by what they were made from and why, by outcome.
 * @param {Outcome[]} outcomes
 */
export function unplaced(outcomes) {
  const groups = new Map();
  outcomes.forEach((outcome, i) => {
    for (const { template, message, asked, pods } of outcome.unplaced) {
      const key = JSON.stringify([template, message, asked]);
      if (!groups.has(key)) groups.set(key, { template, message, asked, pods: outcomes.map(() => []) });
      groups.get(key).pods[i] = pods;
    }
  });
  return [...groups.values()];
}

/**
 * @typedef {object} Fate what becomes of one pod
 * @property {string} pod
 * @property {string} before node, "waits", or "new"
 * @property {string | null} node where it was
 * @property {(string | null)[]} after node by outcome
 * @property {string[]} why it has none, by outcome
 */

/**
 * Return what becomes of each pod in *outcomes*, those with different fates first.
 * @param {Outcome[]} outcomes
 * @returns {Fate[]}
 */
export function fates(outcomes) {
  const [first] = outcomes;
  const waited = new Set(first.pending);
  const whys = outcomes.map(({ unplaced }) => new Map(unplaced.flatMap(({ pods, message }) => pods.map((pod) => [pod, message]))));
  const pods = new Set(outcomes.flatMap(({ placements }, i) => [...Object.keys(placements), ...whys[i].keys()]));
  const found = [...pods].map((pod) => ({
    pod,
    before: first.sources[pod] ?? (waited.has(pod) ? "waits" : "new"),
    node: first.sources[pod] ?? null,
    after: outcomes.map(({ placements }) => placements[pod] ?? null),
    why: whys.map((why) => why.get(pod) ?? ""),
  }));
  return found.sort((a, b) => Number(differs(b)) - Number(differs(a)));
}

/** Whether the outcomes differ about a pod. @param {Fate} fate */
export const differs = ({ after }) => after.some((node) => node !== after[0]);

/**
 * Return the nodes that change in any of *outcomes*, with each resource as a list: before, and after
 * by outcome.
 * @param {Outcome[]} outcomes
 */
export function changedNodes(outcomes) {
  const byName = outcomes.map(({ nodes }) => new Map(nodes.map((each) => [each.node, each])));
  const names = new Set(byName.flatMap((nodes) => [...nodes.keys()]));
  return [...names].sort((a, b) => a.localeCompare(b, "en", { numeric: true })).map((name) => {
    const found = byName.map((nodes) => nodes.get(name));
    const known = found.find(Boolean);
    const use = (resource) => {
      const at = known.resources[resource];
      if (!at) return null;
      // A node that an outcome does not name is in it as it was before.
      return { allocatable: at.allocatable, taken: [at.before, ...found.map((node) => node?.resources[resource]?.after ?? at.before)] };
    };
    return { node: name, change: known.change, use };
  });
}
