import { fill, h, s } from "./dom.js";
import { age, clock } from "./format.js";

/**
 * @typedef {object} Line
 * @property {string} name of its numbers
 * @property {string} label
 */

const WIDTH = 600;
const HEIGHT = 120;
const DASHES = ["", "7 4", "2 3", "10 3 2 3", "1 5"]; // lines differ without their colours, too
const SPANS = [60, 120, 300, 600, 900, 1800, 3600];
const PARTS = [0, 0.5, 1]; // of an axis that have a label
const KEYS = { ArrowLeft: -1, ArrowRight: 1, PageDown: -20, PageUp: 20, Home: -Infinity, End: Infinity };

/**
 * Return a chart of numbers over time; its `update(points)` draws others. The pointer and the arrow
 * keys choose a time, whose numbers are then read out.
 * @param {object} options
 * @param {string} options.title
 * @param {string} options.description what is measured, with its unit
 * @param {Line[]} options.lines
 * @param {(value: number) => string} options.format with the unit
 * @param {number} [options.bound] what the numbers should not exceed
 * @param {number} [options.least] what the axis reaches at least
 * @param {(value: number) => number} [options.ceiling] where the axis ends for a largest number
 * @returns {HTMLElement & {update: (points: Points) => void}}
 *
 * @typedef {{times: number[], numbers: Record<string, number[]>}} Points times in seconds since 1970
 */
export function chart(options) {
  const { title, description, lines, format } = options;
  const parts = {
    plot: s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }),
    scale: h("div", { class: "chart-scale", "aria-hidden": "true" }),
    times: h("div", { class: "chart-times", "aria-hidden": "true" }),
    chosen: h("p", { class: "chart-chosen muted", "aria-hidden": "true" }),
    values: lines.map(() => h("span", { class: "value" })),
    area: h("div", {
      class: "chart-area", tabindex: "0", role: "slider", "aria-orientation": "horizontal",
      "aria-label": `${title}: ${description}. Time`, "aria-valuemax": 0,
    }),
  };
  const { area, plot, scale, times, chosen, values } = parts;
  area.append(plot);
  const drawn = { ...options, ...parts, points: { times: [], numbers: {} }, at: -1, seconds: SPANS[0] };
    listen(drawn);
  const root = h(
    "figure", { class: "chart" },
    h("p", { class: "muted" }, description),
    h("div", { class: "chart-plot" }, scale, area, times),
    h("figcaption", {}, legend(lines, values), chosen),
  );
  return Object.assign(root, {
    update(points) {
      const time = drawn.at < 0 ? null : drawn.points.times[drawn.at];
      drawn.points = points;
      drawn.at = time === null ? -1 : nearest(points.times, time);
      draw(drawn);
    },
  });
}

function listen(drawn) {
  const { area, plot } = drawn;
  const choose = (index) => {
    drawn.at = Math.min(Math.max(index, -1), drawn.points.times.length - 1);
    draw(drawn);
  };
  area.addEventListener("keydown", (event) => {
    const step = KEYS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const from = drawn.at < 0 ? drawn.points.times.length - 1 : drawn.at;
    choose(Math.max(0, from + step));
  });
  area.addEventListener("pointermove", (event) => {
    const { left, width } = plot.getBoundingClientRect();
    const back = drawn.seconds * (1 - (event.clientX - left) / width);
    choose(nearest(drawn.points.times, drawn.points.times.at(-1) - back));
  });
  area.addEventListener("pointerleave", () => choose(-1));
  area.addEventListener("blur", () => choose(-1));
}

function draw(drawn) {
  const { points: { times, numbers }, at, lines, bound = 0, least = 1, ceiling: endOf = roundUp, plot, scale, times: axis, format } = drawn;
  if (!times.length) return;
  const end = times.at(-1);
  const seconds = drawn.seconds = SPANS.find((each) => each >= end - times[0]) ?? SPANS.at(-1);
  const ceiling = endOf(Math.max(least, bound, ...lines.flatMap(({ name }) => numbers[name] ?? [])));
  const x = (time) => WIDTH * Math.max(0, 1 - (end - time) / seconds);
  const y = (value) => HEIGHT * (1 - value / ceiling);
  fill(
    plot,
    PARTS.map((part) => [horizontal(HEIGHT * part, "grid"), vertical(WIDTH * part, "grid")]),
    bound > 0 && horizontal(y(bound), "bound"),
    lines.map(({ name }, i) =>
      s("path", { class: "line", d: path(times, numbers[name] ?? [], x, y), style: appearance(i) })),
    at >= 0 && s("line", { class: "cursor", x1: x(times[at]), x2: x(times[at]), y1: 0, y2: HEIGHT }),
  );
  fill(scale, PARTS.map((part) => h("span", {}, format(ceiling * (1 - part)))));
  fill(axis, PARTS.map((part) => h("span", {}, part === 1 ? "now" : `−${age(seconds * (1 - part))}`)));
  tell(drawn);
}

/** Write the numbers of the chosen time, or of now. */
function tell({ points: { times, numbers }, at, lines, seconds, format, values, chosen, area }) {
  const index = at < 0 ? times.length - 1 : at;
  const when = clock(new Date(times[index] * 1000));
  const texts = lines.map(({ name }) => format(numbers[name]?.[index] ?? 0));
  values.forEach((element, i) => fill(element, texts[i]));
  fill(chosen, at >= 0 && `at ${when}`);
  area.setAttribute("aria-valuemin", String(-seconds));
  area.setAttribute("aria-valuenow", String(Math.round(times[index] - times[times.length - 1])));
  area.setAttribute("aria-valuetext", `${when}: ${lines.map(({ label }, i) => `${label} ${texts[i]}`).join(", ")}`);
}

function legend(lines, values) {
  return h("ul", { class: "legend" }, lines.map(({ label }, i) =>
    h("li", {},
      s("svg", { viewBox: "0 0 24 8", width: 24, height: 8, "aria-hidden": "true" },
        s("line", { class: "line", x1: 0, x2: 24, y1: 4, y2: 4, style: appearance(i) })),
      label, " ", values[i])));
}

const appearance = (i) => ({ stroke: `var(--series-${(i % 8) + 1})`, "stroke-dasharray": DASHES[i % DASHES.length] });

const vertical = (x, kind) => s("line", { class: kind, x1: x, x2: x, y1: 0, y2: HEIGHT });

const horizontal = (y, kind) => s("line", { class: kind, x1: 0, x2: WIDTH, y1: y, y2: y });

function path(times, values, x, y) {
  return times.map((time, i) => `${i ? "L" : "M"}${x(time).toFixed(1)} ${y(values[i] ?? 0).toFixed(1)}`).join("");
}

/** The next 1, 2 or 5 times a power of ten. @param {number} value */
export function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * (/** @type {number} */ ([1, 2, 5, 10].find((step) => step * power >= value * 0.999999)));
}

/** The next duration that people count in. @param {number} seconds */
export const roundUpTime = (seconds) => TIMES.find((each) => each >= seconds) ?? 86400 * roundUp(seconds / 86400);

const TIMES = [60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 43200, 86400];

/** The index of the time that is nearest to *time*; -1 if there is none. @param {number[]} times */
export function nearest(times, time) {
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low > 0 && time - times[low - 1] < times[low] - time ? low - 1 : Math.min(low, times.length - 1);
}
