/**
 * Which part of a layout is seen: zoom 1 is all of its width; x and y are the centre, from 0 to 1.
 *
 * @typedef {{zoom: number, x: number, y: number}} View
 * @typedef {{width: number, height: number}} Size of the viewport in pixels
 * @typedef {import("./layout.js").Layout} Layout
 */

const LARGEST_CELL = 96;

/** @type {Readonly<View>} */
export const ALL = Object.freeze({ zoom: 1, x: 0.5, y: 0 });

/** Pixels of a cell. @param {Layout} layout @param {View} view */
export const scaleOf = (layout, view) => layout.pitch * view.zoom;

/** The pixel where the layout begins. @param {Layout} layout @param {View} view @param {Size} size */
export function originOf(layout, view, size) {
  const scale = scaleOf(layout, view);
  return {
    x: size.width / 2 - view.x * layout.width * scale,
    y: size.height / 2 - view.y * layout.height * scale,
  };
}

/** The point of the layout, in cells, at a pixel. */
export function pointAt(layout, view, size, pixel) {
  const origin = originOf(layout, view, size);
  const scale = scaleOf(layout, view);
  return { x: (pixel.x - origin.x) / scale, y: (pixel.y - origin.y) / scale };
}

/** The view after *by* times as much zoom, in which what is at *pixel* stays there. @returns {View} */
export function zoomed(layout, view, size, by, pixel = { x: size.width / 2, y: size.height / 2 }) {
  const zoom = Math.min(Math.max(view.zoom * by, 1), Math.max(LARGEST_CELL / layout.pitch, 1));
  const at = pointAt(layout, view, size, pixel);
  const scale = layout.pitch * zoom;
  const x = (at.x + (size.width / 2 - pixel.x) / scale) / layout.width;
  const y = (at.y + (size.height / 2 - pixel.y) / scale) / layout.height;
  return kept(layout, { zoom, x, y }, size);
}

/** The view after it was moved by so many pixels. @returns {View} */
export function panned(layout, view, size, dx, dy) {
  const scale = scaleOf(layout, view);
  const x = view.x - dx / scale / layout.width;
  const y = view.y - dy / scale / layout.height;
  return kept(layout, { ...view, x, y }, size);
}

/** The view, moved just as far as needed to see a cell. @returns {View} */
export function showing(layout, view, size, cell, margin = 24) {
  const origin = originOf(layout, view, size);
  const scale = scaleOf(layout, view);
  const over = (start, length) => Math.max(margin - start, 0) || Math.min(length - margin - scale - start, 0);
  const dx = over(origin.x + cell.x * scale, size.width);
  const dy = over(origin.y + cell.y * scale, size.height);
  return dx || dy ? panned(layout, view, size, dx, dy) : view;
}

/** Keep the layout in the viewport: where it is smaller, in the middle and at the top. */
export function kept(layout, { zoom, x, y }, size) {
  const scale = layout.pitch * zoom;
  const [wide, tall] = [size.width / (layout.width * scale), size.height / (layout.height * scale)];
  return { zoom, x: wide >= 1 ? 0.5 : inside(x, wide / 2), y: tall >= 1 ? tall / 2 : inside(y, tall / 2) };
}

const inside = (centre, margin) => Math.min(Math.max(centre, margin), 1 - margin);
