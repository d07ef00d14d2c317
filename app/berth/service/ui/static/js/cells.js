import { h } from "./dom.js";
import { address, nodeAddress, podAddress } from "./routes.js";

/** A link to a pod. @param {string} pod as namespace/name */
export const podLink = (pod) => h("a", { href: podAddress(pod) }, pod);

/** A link to a node, nothing if there is none. @param {string} node */
export const nodeLink = (node) => node && h("a", { href: nodeAddress(node) }, node);

/** A link to a pod group. @param {string} group as namespace/name */
export const groupLink = (group) => h("a", { href: address("groups", group.split("/")) }, group);

/** Links to another screen, of what these plugins did. @param {string} screen @param {string[]} plugins */
export const pluginLinks = (screen, plugins) => list(plugins, (plugin) => h("a", { href: address(screen, [], { plugin }) }, plugin));

/** What *each* makes of things, with commas between. */
export const list = (things, each) => things.map((thing, i) => [i > 0 && ", ", each(thing)]);
