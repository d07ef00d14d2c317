/**
 * @typedef {object} Screen
 * @property {string} name of its address, and of its module in screens/
 * @property {string} title
 * @property {boolean} inNavigation
 * @property {boolean} [hasStyle] whether css/ has a file of its name
 */

/** What there is to see, in the order of the navigation; the first is shown first. @type {Screen[]} */
export const SCREENS = [
  { name: "cluster", title: "Cluster", inNavigation: true, hasStyle: true },
  { name: "configuration", title: "Configuration", inNavigation: true },
];
