import { color } from "../colors.js";
import { MARKS } from "./data.js";
import { cellOf } from "./layout.js";
import { originOf, scaleOf } from "./view.js";

/**
 * @typedef {object} Scene what is drawn
 * @property {import("./data.js").Nodes} nodes
 * @property {import("./layout.js").Layout} layout
 * @property {import("./coloring.js").Coloring} coloring
 * @property {{label: string, sums: string[]}[]} headings by group; of the sums the first that has room
 * is shown; none if there is one group only
 * @property {Uint8Array | null} isFound by node, whether the search finds it; null: nothing is searched
 * @property {number} numFound
 */

const LINES_FROM = 4;
const MARKS_FROM = 10;
const SIGNS_FROM = 15;
const LARGEST_SIGN = 18;
const NAMES_FROM = 48;
const SMALLEST_RING = 10;
const SMALLEST_FOUND = 5;
const MOST_FOUND = 2000;
const HEADING_BASE = 17; // pixels from the upper edge: headings of what is in view stay in view
const FAINT = 50; // of 255: cells that the search does not find
const FONT = "system-ui, sans-serif";

/**
 * Draws a scene on a canvas.
 *
 * The cells are kept as a bitmap with one pixel for each, which is scaled up in one go: a frame
 * costs the same for 50 cells and for 50,000. Lines between cells, marks and signs are drawn over
 * what is in view, where there is room for them.
 */
export class Painter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    this.cells = document.createElement("canvas");
    this.size = { width: 1, height: 1 };
    this.readColors();
  }

  /** Ask again what colours the theme has. The scene must be set again. */
  readColors() {
    this.colors = new Map();
    this.inks = new Map();
  }

  /** @param {number} width in CSS pixels @param {number} height */
  resize(width, height) {
    this.ratio = Math.min(window.devicePixelRatio || 1, 3);
    this.size = { width, height };
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
  }

  /** @param {Scene} scene */
  set(scene) {
    this.scene = scene;
    const { nodes, layout, coloring, isFound } = scene;
    const image = new ImageData(layout.width, layout.height);
    const pixels = new Uint32Array(image.data.buffer);
    const words = coloring.classes.map(({ token }) => this.word(token));
    const faint = words.map((word) => ((word & 0xffffff) | (FAINT << 24)) >>> 0);
    for (const { first, count, x, y, columns } of layout.blocks) {
      for (let within = 0; within < count; within += 1) {
        const node = nodes.order[first + within];
        const target = (y + Math.floor(within / columns)) * layout.width + x + (within % columns);
        const each = coloring.classOf[node];
        pixels[target] = isFound && !isFound[node] ? faint[each] : words[each];
      }
    }
    this.cells.width = layout.width;
    this.cells.height = layout.height;
    /** @type {CanvasRenderingContext2D} */ (this.cells.getContext("2d")).putImageData(image, 0, 0);
  }

  /**
   * Draw the scene.
   * @param {import("./view.js").View} view
   * @param {{focus: number, chosen: number}} places of cells with a ring; -1: none
   */
  draw(view, { focus, chosen }) {
    const { context, size, scene } = this;
    const scale = scaleOf(scene.layout, view);
    const origin = originOf(scene.layout, view, size);
    const at = { scale, origin, ...visible(scene.layout, scale, origin, size) };
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.fillStyle = this.color("--surface");
    context.fillRect(0, 0, size.width, size.height);
    this.drawCells(at);
    if (scale >= LINES_FROM) this.drawLines(at);
    if (scale >= MARKS_FROM) this.drawMarks(at);
    if (scale >= SIGNS_FROM) this.drawSigns(at);
    if (scale >= NAMES_FROM) this.drawNames(at);
    this.drawFound(at);
    this.drawHeadings(at);
    if (chosen >= 0) this.drawRing(at, chosen, "--text");
    if (focus >= 0) this.drawRing(at, focus, "--accent");
  }

  drawCells({ scale, origin, left, top, right, bottom }) {
    if (right <= left || bottom <= top) return;
    const [width, height] = [right - left, bottom - top];
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(
      this.cells, left, top, width, height,
      origin.x + left * scale, origin.y + top * scale, width * scale, height * scale,
    ); // prettier-ignore
  }

  drawLines({ scale, origin, left, top, right, bottom }) {
    const { context, ratio } = this;
    const thin = Math.max(1, Math.round(scale / 12));
    const snapped = (value) => Math.round(value * ratio) / ratio;
    const [x0, y0] = [origin.x + left * scale, origin.y + top * scale];
    context.fillStyle = this.color("--surface");
    for (let x = left; x <= right; x += 1) {
      context.fillRect(snapped(origin.x + x * scale - thin / 2), y0, thin, (bottom - top) * scale);
    }
    for (let y = top; y <= bottom; y += 1) {
      context.fillRect(x0, snapped(origin.y + y * scale - thin / 2), (right - left) * scale, thin);
    }
  }

  /** A cross: not ready; a stroke: unschedulable; a corner: taints. */
  drawMarks(at) {
    const { nodes } = this.scene;
    const paths = new Map();
    for (const { node, x, y, side } of this.cellsIn(at)) {
      const marks = nodes.marks[node];
      if (!marks) continue;
      const ink = this.ink(node);
      let path = paths.get(ink);
      if (!path) paths.set(ink, (path = { lines: new Path2D(), corners: new Path2D() }));
      mark(path, marks, x, y, side);
    }
    this.context.lineWidth = Math.max(1.2, at.scale / 14);
    for (const [ink, { lines, corners }] of paths) {
      this.context.strokeStyle = this.context.fillStyle = ink;
      this.context.stroke(lines);
      this.context.fill(corners);
    }
  }

  drawSigns(at) {
    const { context } = this;
    const { coloring, nodes } = this.scene;
    context.font = `600 ${Math.min(Math.round(at.scale * 0.5), LARGEST_SIGN)}px ${FONT}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const { node, x, y, side } of this.cellsIn(at)) {
      const { sign } = coloring.classes[coloring.classOf[node]];
      if (!sign || nodes.marks[node] & (MARKS.NOT_READY | MARKS.UNSCHEDULABLE)) continue;
      context.fillStyle = this.ink(node);
      context.fillText(sign, x + side / 2, y + side / 2 + 1);
    }
  }

  drawNames(at) {
    const { context, scene } = this;
    context.font = `11px ${FONT}`;
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    for (const { node, x, y, side } of this.cellsIn(at)) {
      context.fillStyle = this.ink(node);
      context.fillText(shortened(context, scene.nodes.names[node], side - 10), x + 5, y + side - 7);
    }
  }

  drawHeadings({ scale, origin }) {
    const { size } = this;
    const { headings, layout } = this.scene;
    if (!headings.length) return;
    for (const { group, x, y, span, rows } of layout.blocks) {
      const left = Math.max(origin.x + x * scale, 2);
      const wide = origin.x + (x + span) * scale - left;
      const top = origin.y + y * scale;
      const end = top + rows * scale;
      if (end < HEADING_BASE || top > size.height + HEADING_BASE || wide < 20 || left > size.width) continue;
      this.drawHeading(headings[group], left, Math.max(top - 5, HEADING_BASE), wide);
    }
  }

  drawHeading({ label, sums }, left, base, wide) {
    const { context } = this;
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    context.font = `600 12px ${FONT}`;
    const shown = shortened(context, label, wide);
    const used = context.measureText(`${shown}  `).width;
    context.font = `12px ${FONT}`;
    const sum = sums.find((each) => used + context.measureText(each).width <= wide) ?? "";
    const whole = Math.min(used + context.measureText(sum).width, wide);
    context.fillStyle = this.color("--surface");
    context.fillRect(left - 2, base - 13, whole + 6, 17);
    context.fillStyle = this.color("--muted");
    context.fillText(sum, left + used, base);
    context.fillStyle = this.color("--text");
    context.font = `600 12px ${FONT}`;
    context.fillText(shown, left, base);
  }

  /** Frame what the search finds, unless that is too much to see. */
  drawFound(at) {
    const { context, scene } = this;
    if (!scene.isFound || scene.numFound > MOST_FOUND) return;
    context.strokeStyle = this.color("--accent");
    context.lineWidth = 1.5;
    const side = Math.max(at.scale, SMALLEST_FOUND);
    for (const { x, y } of this.cellsIn(at)) {
      context.strokeRect(x + (at.scale - side) / 2, y + (at.scale - side) / 2, side, side);
    }
  }

  drawRing({ scale, origin }, place, token) {
    const { context, scene } = this;
    const cell = cellOf(scene.layout, place);
    const side = Math.max(scale, SMALLEST_RING);
    const x = origin.x + (cell.x + 0.5) * scale - side / 2;
    const y = origin.y + (cell.y + 0.5) * scale - side / 2;
    for (const [each, width] of /** @type {[string, number][]} */ ([["--surface", 5], [token, 2.5]])) {
      context.strokeStyle = this.color(each);
      context.lineWidth = width;
      context.strokeRect(x - 1, y - 1, side + 2, side + 2);
    }
  }

  /** The cells in view that the search finds, with pixels. */
  *cellsIn({ scale, origin, left, top, right, bottom }) {
    const { nodes, layout, isFound } = this.scene;
    const side = scale;
    for (const { first, count, x, y, columns, rows } of layout.blocks) {
      const last = Math.min(y + rows, bottom);
      for (let row = Math.max(y, top); row < last; row += 1) {
        for (let column = Math.max(x, left); column < Math.min(x + columns, right); column += 1) {
          const within = (row - y) * columns + column - x;
          if (within >= count) break;
          const node = nodes.order[first + within];
          if (isFound && !isFound[node]) continue;
          yield { node, x: origin.x + column * scale, y: origin.y + row * scale, side };
        }
      }
    }
  }

  color(token) {
    let found = this.colors.get(token);
    if (!found) this.colors.set(token, (found = color(token)));
    return found;
  }

  /** A colour as a pixel: red in the lowest byte, and opaque. */
  word(token) {
    const [red, green, blue] = this.color(token).match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0];
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  }

  /** Black or white, whichever is seen better on the colour of a node. */
  ink(node) {
    const { coloring } = this.scene;
    const { token } = coloring.classes[coloring.classOf[node]];
    let found = this.inks.get(token);
    if (!found) {
      const [red, green, blue] = this.color(token).match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0];
      found = red * 0.299 + green * 0.587 + blue * 0.114 > 140 ? "#101418" : "#fff";
      this.inks.set(token, found);
    }
    return found;
  }
}

function visible(layout, scale, origin, size) {
  return {
    left: Math.max(0, Math.floor(-origin.x / scale)),
    top: Math.max(0, Math.floor(-origin.y / scale)),
    right: Math.min(layout.width, Math.ceil((size.width - origin.x) / scale)),
    bottom: Math.min(layout.height, Math.ceil((size.height - origin.y) / scale)),
  };
}

function mark({ lines, corners }, marks, x, y, side) {
  const [near, far] = [side * 0.22, side * 0.78];
  if (marks & (MARKS.NOT_READY | MARKS.UNSCHEDULABLE)) {
    lines.moveTo(x + near, y + far);
    lines.lineTo(x + far, y + near);
  }
  if (marks & MARKS.NOT_READY) {
    lines.moveTo(x + near, y + near);
    lines.lineTo(x + far, y + far);
  }
  if (marks & MARKS.TAINTED) {
    corners.moveTo(x + side * 0.62, y + side * 0.08);
    corners.lineTo(x + side * 0.92, y + side * 0.08);
    corners.lineTo(x + side * 0.92, y + side * 0.38);
  }
}

function shortened(context, text, width) {
  const full = context.measureText(text).width;
  if (full <= width) return text;
  return `${text.slice(0, Math.max(1, Math.floor((text.length * width) / full) - 2))}…`;
}
