/**
 * @typedef {object} Screen
 * @property {string} name of its address, and of its module in screens/
 * @property {string} title
 * @property {boolean} inNavigation
 * @property {boolean} [hasStyle] whether css/ has a file of its name
 */

/** What there is to see, in the order of the navigation; the first is shown first. @type {Screen[]} */
export const SCREENS = [
  { name: "overview", title: "Overview", inNavigation: true, hasStyle: true },
  { name: "cluster", title: "Cluster", inNavigation: true, hasStyle: true },
  { name: "pending", title: "Pending", inNavigation: true, hasStyle: true },
  { name: "pods", title: "Pod", inNavigation: false, hasStyle: true },
  { name: "what-if", title: "What if", inNavigation: true, hasStyle: true },
  { name: "queue", title: "Queue", inNavigation: true },
  { name: "nodes", title: "Nodes", inNavigation: true },
  { name: "decisions", title: "Decisions", inNavigation: true },
  { name: "groups", title: "Groups", inNavigation: true },
  { name: "devices", title: "Devices", inNavigation: true },
  { name: "shards", title: "Shards", inNavigation: true },
  { name: "configuration", title: "Configuration", inNavigation: true },
];
