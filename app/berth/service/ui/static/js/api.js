/** Where the endpoints are: one above the page, whatever is in front of both. */
const ROOT = new URL("../", document.baseURI);

/** A request was refused, or not answered at all. */
export class ApiError extends Error {
  /** @param {number} status 0: there was no answer @param {string} reason @param {any} [body] */
  constructor(status, reason, body = null) {
    super(reason);
    this.status = status;
    this.reason = reason;
    this.body = body;
  }
}

/**
 * Return the URL of an endpoint.
 * @param {string} path as in `debug/queue`
 * @param {Record<string, any>} [params] empty ones are left out
 */
export function url(path, params = {}) {
  const target = new URL(path, ROOT);
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") target.searchParams.set(name, value);
  }
  return target;
}

/** A segment of a path: names from the cluster and from links are data. Throws ApiError for `.` and `..`. */
export function segment(name) {
  if (name === "." || name === "..") throw new ApiError(404, `There is nothing called ${name}.`);
  return encodeURIComponent(name);
}

/**
 * Return the JSON of an endpoint. Throws ApiError; an AbortError when *signal* is aborted.
 * @param {string} path
 * @param {Record<string, any>} [params]
 * @param {{signal?: AbortSignal}} [options]
 */
export async function get(path, params = {}, { signal } = {}) {
  return (await send(url(path, params), { signal })).json();
}

/** Post *body* as JSON and return the JSON of the answer. Throws as `get`. */
export async function post(path, body, { signal } = {}) {
  const headers = { "Content-Type": "application/json" };
  return (await send(url(path), { method: "POST", headers, body: JSON.stringify(body), signal })).json();
}

/**
 * Return the response of an endpoint, for what is not JSON and for conditional requests: 304 is not
 * an error. Throws as `get`.
 * @param {URL} target @param {RequestInit} options @returns {Promise<Response>}
 */
export async function send(target, options = {}) {
  let response;
  try {
    response = await fetch(target, { ...options, redirect: "error", cache: options.cache ?? "no-store" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, "No answer: the scheduler is not running, or not reachable.");
  }
  if (!response.ok && response.status !== 304) throw await refusal(response);
  return response;
}

async function refusal(response) {
  const text = await response.text();
  let body = null;
  try {
    body = JSON.parse(text);
  } catch {
    // plain text
  }
  return new ApiError(response.status, reason(response, body, text), body);
}

function reason(response, body, text) {
  if (response.status === 401) return "This session has ended. Open the page again, by a new link.";
  if (typeof body?.detail === "string") return body.detail;
  if (Array.isArray(body?.detail)) {
    return body.detail.map(({ loc = [], msg = "" }) => `${loc.slice(1).join(".")}: ${msg}`).join("; ");
  }
  if (typeof body?.message === "string") return body.message;
  return text.trim().slice(0, 500) || `${response.status} ${response.statusText}`;
}
