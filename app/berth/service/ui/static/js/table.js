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
 * @property {boolean} [optional] left out where no row has a value
 * @property {boolean} [detail] below the others, as wide as the table: for long texts
 * @property {boolean} [fixed] its heading does not sort
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
 * @param {boolean} [options.isSorted] whether the rows are in the order that the headings say already
 * @param {string} [options.query] what is searched at first
 * @param {(state: {query: string, by: string | null, descending: boolean}) => void} [options.onchange]
 * @returns {HTMLElement & {update: (rows: Row[]) => void}}
 */
export function table({ caption, columns, rows = [], empty = "None.", search = true, sort = null, isSorted = false, query = "", onchange = () => {} }) {
  let by = columns.find(({ name }) => name === sort?.by) ?? null;
  let descending = Boolean(sort?.descending);
  const heads = columns.filter(({ detail }) => !detail);
  const headings = heads.map(heading);
  const body = h("table", { role: "table" }, h("caption", { class: "hidden" }, caption), h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, headings)));
  const note = h("p", { class: "note", role: "status" });
  const field = h("input", { type: "search", placeholder: "Search", "aria-label": `Search: ${caption}`, value: query, oninput: searched });
  const root = h(
    "section",
    { class: "table" },
    h("div", { class: "table-tools" }, h("h2", {}, caption), search && field),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      body),
    note,
  );

  function heading(column) {
    const press = () => {
      descending = by === column ? !descending : Boolean(column.numeric);
      by = column;
      changed();
    };
    const label = column.fixed ? column.title : h("button", { type: "button", class: "sort", onclick: press }, column.title);
    return h("th", { scope: "col", role: "columnheader", class: column.numeric && "number" }, label);
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
    if (by && !isSorted) found.sort(order(by, descending));
    const isHere = (column) => !column.optional || rows.some((row) => !isEmpty(column.value(row)));
    headings.forEach((element, i) => {
      const column = heads[i];
      element.hidden = !isHere(column);
      if (column === by) element.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else element.removeAttribute("aria-sort");
    });
    const shown = columns.filter(isHere);
    body.querySelectorAll("tbody").forEach((each) => each.remove());
    body.append(...found.slice(0, MOST_ROWS).map((row) => lines(row, shown)));
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

/** A row, and one more for each long text that it has. */
function lines(row, columns) {
  const heads = columns.filter(({ detail }) => !detail);
  const details = columns.filter(({ detail, value }) => detail && !isEmpty(value(row)));
  return h(
    "tbody",
    { role: "rowgroup" },
    h("tr", { role: "row", class: details.length > 0 && "has-detail" }, heads.map((column) => cell(row, column))),
    details.map((column) => h("tr", { role: "row", class: "detail" }, h("td", { role: "cell", colspan: heads.length }, shown(row, column)))),
  );
}

/** On narrow screens the title stands before the cell, and empty cells are left out. */
function cell(row, column) {
  const attributes = { role: "cell", class: column.numeric ? "number" : column.nowrap && "nowrap", "data-title": column.title };
  return h("td", attributes, shown(row, column));
}

const shown = (row, column) => (column.cell ? column.cell(row) : column.value(row));

const isEmpty = (value) => value === null || value === undefined || value === "";

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
