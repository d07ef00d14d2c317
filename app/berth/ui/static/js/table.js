import { fill, h } from "./dom.js";
import { count } from "./format.js";

/**
 * @template Row
 * @typedef {object} Column
 * @property {string} name
 * @property {string} title
 * @property {(row: Row) => string | number | null} value what it is sorted and searched by
 * @property {(row: Row) => import("./dom.js").Child} [cell] what is shown; the value by default
 * @property {boolean} [numeric] aligned to the right
 * @property {boolean} [nowrap] in one line, as numbers are
 */

const MOST_ROWS = 500;

/**
 * Return a table that can be sorted and searched; its `update(rows)` shows other rows.
 * @template Row
 * @param {object} options
 * @param {string} options.caption what the rows are
 * @param {Column<Row>[]} options.columns
 * @param {Row[]} [options.rows]
 * @param {string} [options.empty] what to say when there are none
 * @param {boolean} [options.search] whether there is a field to search in the rows
 * @param {{by: string, descending?: boolean} | null} [options.sort]
 * @param {string} [options.query] what is searched at first
 * @param {(state: {query: string, by: string | null, descending: boolean}) => void} [options.onchange]
 * @returns {HTMLElement & {update: (rows: Row[]) => void}}
 */
export function table({ caption, columns, rows = [], empty = "None.", search = true, sort = null, query = "", onchange = () => {} }) {
  let by = columns.find(({ name }) => name === sort?.by) ?? null;
  let descending = Boolean(sort?.descending);
  const headings = columns.map(heading);
  const body = h("tbody");
  const note = h("p", { class: "note", role: "status" });
  const field = h("input", { type: "search", placeholder: "Search", "aria-label": `Search: ${caption}`, value: query, oninput: searched });
  const root = h(
    "section",
    { class: "table" },
    h("div", { class: "table-tools" }, h("h2", {}, caption), search && field),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, headings)), body)),
    note,
  );

  function heading(column) {
    const press = () => {
      descending = by === column ? !descending : Boolean(column.numeric);
      by = column;
      changed();
    };
    const label = h("button", { type: "button", class: "sort", onclick: press }, column.title);
    return h("th", { scope: "col", class: column.numeric && "number" }, label);
  }

  function searched() {
    query = /** @type {HTMLInputElement} */ (field).value;
    changed();
  }

  function changed() {
    draw();
    onchange({ query, by: by?.name ?? null, descending });
  }

  function draw() {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter((row) => matches(row, columns, words));
    if (by) found.sort(order(by, descending));
    headings.forEach((element, i) => {
      const direction = columns[i] !== by ? "none" : descending ? "descending" : "ascending";
      element.setAttribute("aria-sort", direction);
    });
    fill(body, found.slice(0, MOST_ROWS).map((row) => line(row, columns)));
    fill(note, told(found.length, rows.length, empty));
  }

  draw();
  return Object.assign(root, {
    update(others) {
      rows = others;
      draw();
    },
  });
}

function line(row, columns) {
  const cells = columns.map((column) =>
    h("td", { class: column.numeric ? "number" : column.nowrap && "nowrap" }, column.cell ? column.cell(row) : column.value(row)),
  );
  return h("tr", {}, cells);
}

function matches(row, columns, words) {
  if (!words.length) return true;
  const text = columns.map(({ value }) => value(row) ?? "").join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

function order(column, descending) {
  const sign = descending ? -1 : 1;
  return (a, b) => sign * compare(column.value(a), column.value(b));
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a ?? "").localeCompare(String(b ?? ""), "en", { numeric: true });
}

function told(found, all, empty) {
  if (!all) return empty;
  if (found > MOST_ROWS) return `The first ${count(MOST_ROWS)} of ${count(found)}. Search to see others.`;
  return found < all ? `${count(found)} of ${count(all)}` : "";
}
