import { get, url } from "./api.js";
import { answered, unanswered } from "./connection.js";
import { fill, h } from "./dom.js";
import { count } from "./format.js";
import { repeat } from "./repeat.js";
import { setQuery } from "./routes.js";
import { sources } from "./sources.js";
import { problem } from "./states.js";
import { table } from "./table.js";

/**
 * @typedef {object} Filter
 * @property {string} name of the parameter, in the address and of the endpoint
 * @property {string} label
 * @property {[string, string][]} [choices] value and words; without them any text can be typed
 */

const SECONDS = 5;
const LIMIT = 100;
const TYPING_MILLISECONDS = 300;

/**
 * Show a list of the server page by page. Filters, order and page are in the address; what is
 * filtered is filtered by the server, so that a large cluster is never loaded as a whole.
 * @param {import("./main.js").View} view
 * @param {import("./routes.js").Route} route
 * @param {object} options
 * @param {string} options.path of the endpoint
 * @param {string} options.caption what the rows are
 * @param {import("./table.js").Column<any>[]} options.columns
 * @param {Filter[]} options.filters the first is what is searched for
 * @param {string} options.empty what to say when there are none
 * @param {(answer: any) => import("./dom.js").Child} [options.summary] of the whole list
 * @param {Record<string, any>} [options.params] that are always asked for
 * @param {{by: string, descending?: boolean}} [options.sort] how the server sorts, unless somebody chooses a
 * heading; without it headings sort the page
 * @param {(asked: Record<string, string>) => string[]} options.command that does the same
 */
export async function paged(view, route, { path, caption, columns, filters, empty, summary = () => null, params = {}, sort, command }) {
  const before = /** @type {string[]} */ ([]); // where the pages before this one begin
  let asked = /** @type {Record<string, string>} */ ({});
  let token = "";
  let order = sortOf(route);
  const fields = new Map(filters.map((filter, i) => [filter.name, field(filter, !i, changed)]));
  const rows = table({
    caption, columns, empty, search: false, isSorted: Boolean(sort),
    sort: sortOf(route),
    onchange: ({ by, descending }) => {
      order = { by, descending };
      before.length = 0;
      setQuery({ sort: by, descending: descending ? "yes" : "no" });
      if (sort) turn("");
    },
  });
  const about = h("p", { class: "muted" });
  const previous = h("button", { type: "button", onclick: () => turn(before.pop() ?? "") }, "Previous page");
  const next = h("button", { type: "button" }, "Next page");
  const origin = h("div");

  function read({ query }) {
    asked = Object.fromEntries(filters.map(({ name }) => [name, query.get(name) ?? ""]).filter(([, value]) => value));
    token = query.get("continue") ?? "";
    for (const [name, element] of fields) if (element !== document.activeElement) element.value = asked[name] ?? "";
  }

  function changed() {
    asked = Object.fromEntries([...fields].map(([name, element]) => [name, element.value.trim()]).filter(([, value]) => value));
    before.length = 0;
    setQuery({ ...Object.fromEntries([...fields.keys()].map((name) => [name, asked[name]])) });
    turn("");
  }

  function turn(to) {
    token = to;
    setQuery({ continue: token });
    load().then(answered, failed);
  }

  function failed(error) {
    if (!view.signal.aborted) unanswered(error);
  }

  function sortOf({ query }) {
    if (!query.get("sort")) return sort ?? null;
    return { by: query.get("sort"), descending: query.has("descending") && query.get("descending") !== "no" };
  }

  /** What is asked for now, beside the page. */
  const wanted = () => ({ ...params, ...asked, ...(sort && { sort: order.by, descending: order.descending || null }) });

  async function load() {
    const page = () => ({ ...wanted(), limit: LIMIT, continue: token });
    const key = JSON.stringify(page());
    const answer = await get(path, page(), { signal: view.signal });
    if (key !== JSON.stringify(page())) return; // another question since
    keepingFocus(rows, () => rows.update(answer.items));
    fill(about, summary(answer));
    about.hidden = !about.hasChildNodes();
    previous.hidden = !before.length && !token;
    fill(previous, before.length ? "Previous page" : "First page");
    next.hidden = !answer.continue;
    next.onclick = () => (before.push(token), turn(answer.continue));
    fill(origin, sources({ json: url(path, wanted()), command: command(asked) }));
  }

  read(route);
  await repeat(SECONDS, view.signal, load);
  const form = h("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    filters.map(({ name, label }) => h("label", {}, h("span", {}, label), fields.get(name))));
  fill(view.root, about, form, rows, h("p", { class: "pages" }, previous, next,
    h("span", { class: "muted" }, `At most ${count(LIMIT)} on a page${sort ? "" : ", sorted on the page"}`)), origin);
  return {
    update(where) {
      read(where);
      order = sortOf(where);
      before.length = 0;
      load().then(answered, (error) => (view.signal.aborted ? null : fill(view.root, problem(error))));
    },
  };
}

function field({ name, choices }, isSearch, changed) {
  if (choices) {
    return /** @type {HTMLSelectElement} */ (
      h("select", { name, onchange: changed }, h("option", { value: "" }, "any"),
        choices.map(([value, words]) => h("option", { value }, words))));
  }
  let typing = 0;
  const typed = () => {
    clearTimeout(typing);
    typing = window.setTimeout(changed, TYPING_MILLISECONDS);
  };
  return /** @type {HTMLInputElement} */ (h("input", { name, type: isSearch ? "search" : "text", oninput: typed }));
}

/** Do *change*, which draws links anew, and have the focus on the same one as before. */
function keepingFocus(element, change) {
  const focused = document.activeElement;
  const href = element.contains(focused) ? focused?.getAttribute("href") : null;
  const index = href ? links(element, href).indexOf(/** @type {Element} */ (focused)) : -1;
  change();
  if (href) /** @type {HTMLElement | undefined} */ (links(element, href)[Math.max(index, 0)])?.focus({ preventScroll: true });
}

const links = (element, href) => [...element.querySelectorAll("a")].filter((link) => link.getAttribute("href") === href);
