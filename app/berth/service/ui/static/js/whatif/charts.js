import { h, s } from "../dom.js";
import { count } from "../format.js";

const WIDTH = 420;
const HEIGHT = 130;
const TOP = 14;
const BOTTOM = 16;
const LEFT = 26;
const DIGIT = 5.5;

/**
 * Return a chart of how many nodes are in each range of use, with its numbers.
 * @param {string} resource
 * @param {{name: string, counts: number[]}[]} series by ranges of the same size, from 0 to 100%
 */
export function distribution(resource, series) {
  const ranges = series[0].counts.map((_, i, { length }) => rangeName(i, length));
  return h(
    "figure",
    { class: "distribution" },
    h("figcaption", {}, `Nodes by use of ${resource}`),
    drawing(resource, series),
    h(
      "details",
      {},
      h("summary", {}, "Numbers"),
      h("table", {}, h("thead", {}, h("tr", {}, ["Use", ...series.map(({ name }) => name)].map((text, i) => h("th", { scope: "col", class: i && "number" }, text)))),
        h("tbody", {}, ranges.map((range, i) => h("tr", {}, h("th", { scope: "row" }, range), series.map(({ counts }) => h("td", { class: "number" }, count(counts[i]))))))),
    ),
  );
}

function drawing(resource, series) {
  const most = Math.max(1, ...series.flatMap(({ counts }) => counts));
  const bins = series[0].counts.length;
  const step = (WIDTH - LEFT) / bins;
  const width = (step - 4) / series.length;
  const room = HEIGHT - TOP - BOTTOM;
  const bar = (value, i, j) => {
    const height = value ? Math.max(1, (value / most) * room) : 0;
    const x = LEFT + i * step + 2 + j * width;
    const y = HEIGHT - BOTTOM - height;
    return [
      s("rect", { class: `bar series-${j}`, x, y, width: width - 1, height }),
      value > 0 && String(value).length * DIGIT < width && s("text", { x: x + (width - 1) / 2, y: y - 2 }, value),
    ];
  };
  return s(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Nodes by use of ${resource}; the numbers follow` },
    ticks(most).map((value) => {
      const y = HEIGHT - BOTTOM - (value / most) * room;
      return [s("line", { class: "axis", x1: LEFT, x2: WIDTH, y1: y, y2: y }), s("text", { class: "last", x: LEFT - 4, y: y + 3 }, count(value))];
    }),
    series.map(({ counts }, j) => counts.map((value, i) => bar(value, i, j))),
    [0, 25, 50, 75, 100].map((share) => s("text", { class: `tick ${share === 0 ? "first" : share === 100 ? "last" : ""}`, x: LEFT + (share / 100) * (WIDTH - LEFT), y: HEIGHT - 3 }, `${share}%`)),
  );
}

/** Numbers of nodes for the axis: none, half, and the most. */
const ticks = (most) => [0, ...(most % 2 ? [] : [most / 2]), most];

/** What the colours of all charts mean; bars are in this order. @param {string[]} names */
export const legend = (names) =>
  h("ul", { class: "legend" }, names.map((name, j) => h("li", {}, h("span", { class: `key series-${j}`, "aria-hidden": "true" }), name)));

const rangeName = (i, length) => {
  const [from, to] = [(100 * i) / length, (100 * (i + 1)) / length];
  return to === 100 ? `${from}% and more` : `${from}% to under ${to}%`;
};
