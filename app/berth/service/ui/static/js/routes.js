/** @typedef {{screen: string, path: string[], query: URLSearchParams}} Route */

/**
 * Return the address of a screen, for links.
 * @param {string} screen
 * @param {string[]} [path] segments after the screen
 * @param {Record<string, string | number | boolean | null | undefined>} [query] empty ones are left out
 */
export function address(screen, path = [], query = {}) {
  const segments = [screen, ...path].map(encodeURIComponent).join("/");
  const parameters = new URLSearchParams(
    Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false),
  ).toString();
  return `#/${segments}${parameters && `?${parameters}`}`;
}

/** The address of the screen of a pod. @param {string} pod as namespace/name */
export const podAddress = (pod) => address("pods", pod.split("/"));

/** The address of a node. @param {string} node */
export const nodeAddress = (node) => address("cluster", [], { node });

/** @param {string} hash @returns {Route} */
export function parse(hash) {
  const [, path = "", query = ""] = /^#?\/?([^?]*)\??(.*)$/s.exec(hash) ?? [];
  const [screen = "", ...rest] = path.split("/").map(decoded);
  return { screen, path: rest.filter(Boolean), query: new URLSearchParams(query) };
}

/** Go to another address, as if a link had been followed. @param {string} where */
export function go(where) {
  location.hash = where;
}

/**
 * Change the query of the address in place: what is seen stays, and the address is that of what is
 * seen.
 * @param {Record<string, string | number | null | undefined>} changes null takes one away
 */
export function setQuery(changes) {
  const { screen, path, query } = parse(location.hash);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") query.delete(name);
    else query.set(name, String(value));
  }
  history.replaceState(null, "", address(screen, path, Object.fromEntries(query)));
}

function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment; // a stray % typed by hand
  }
}
