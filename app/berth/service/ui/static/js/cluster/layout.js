/**
 * Where each node is drawn. Pure: counts and the size of the viewport go in, places come out.
 *
 * Lengths are in cells. Groups are blocks on shelves of one height, in the order given; the cells of
 * a block go row by row. A place is the number of a cell, counted over all blocks.
 *
 * @typedef {object} Block the cells of one group
 * @property {number} group
 * @property {number} first its first place
 * @property {number} count
 * @property {number} x of its first cell
 * @property {number} y
 * @property {number} columns
 * @property {number} span its columns, and more if its heading is wider
 * @property {number} rows
 *
 * @typedef {object} Layout
 * @property {number} pitch pixels from one cell to the next when everything is in view
 * @property {number} width
 * @property {number} height
 * @property {number} heading cells that are left free above a block
 * @property {Block[]} blocks
 */

const MOST_HEADINGS = 300;
const LARGEST_PITCH = 72;
const SMALLEST_PITCH = 1.5;
const FINER = 0.97;
const HEADING_PIXELS = 22;
const HEADING_WIDTH = 84;
const GAP_PIXELS = 12;

/** Whether so many groups have headings: neither one nor too many. @param {number} groups */
export const hasHeadings = (groups) => groups > 1 && groups <= MOST_HEADINGS;

/**
 * Lay out groups of so many nodes, as large as they fit; if they fit only too small, taller than the
 * viewport. With too many groups for headings they follow each other without.
 * @param {number[]} counts @param {{width: number, height: number}} size of the viewport in pixels
 * @returns {Layout}
 */
export function layOut(counts, { width, height }) {
  const isHeaded = hasHeadings(counts.length);
  const sizes = isHeaded ? counts : [counts.reduce((sum, count) => sum + count, 0)];
  for (let tall = Math.max(height, 50); ; tall *= 1.5) {
    const found = largest(sizes, { width: Math.max(width, 50), height: tall }, isHeaded);
    if (found) return found;
  }
}

function largest(counts, size, isHeaded) {
  for (let pitch = LARGEST_PITCH; pitch >= SMALLEST_PITCH; pitch *= FINER) {
    const heading = isHeaded ? Math.ceil(HEADING_PIXELS / pitch) : 0;
    const gap = isHeaded ? Math.ceil(GAP_PIXELS / pitch) : 0;
    const least = isHeaded ? Math.ceil(HEADING_WIDTH / pitch) : 1;
    const columns = Math.floor(size.width / pitch);
    const rows = Math.floor(size.height / pitch) + gap;
    for (let shelves = 1; shelves * (heading + gap + 1) <= rows && shelves <= counts.length; shelves += 1) {
      const tall = Math.floor(rows / shelves) - heading - gap;
      const blocks = onShelves(counts, { columns, tall, shelves, heading, gap, least: Math.min(least, columns) });
      if (blocks) return layout(blocks, pitch, heading);
    }
  }
  return null;
}

function onShelves(counts, { columns, tall, shelves, heading, gap, least }) {
  const blocks = [];
  let [x, shelf, first] = [0, 0, 0];
  for (const [group, count] of counts.entries()) {
    const wide = Math.min(Math.max(Math.ceil(count / tall), least), Math.max(count, 1));
    const span = Math.max(wide, least);
    if (span > columns) return null;
    if (x + span > columns) [x, shelf] = [0, shelf + 1];
    if (shelf === shelves) return null;
    const y = shelf * (heading + tall + gap) + heading;
    blocks.push({ group, first, count, x, y, columns: wide, span, rows: Math.ceil(count / wide) });
    x += span + gap;
    first += count;
  }
  return blocks;
}

function layout(blocks, pitch, heading) {
  return {
    pitch,
    heading,
    width: Math.max(1, ...blocks.map(({ x, span }) => x + span)),
    height: Math.max(1, ...blocks.map(({ y, rows }) => y + rows)),
    blocks,
  };
}

/** Where the cell of a place is. @param {Layout} layout @param {number} place */
export function cellOf({ blocks }, place) {
  let [low, high] = [0, blocks.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (blocks[middle].first <= place) low = middle;
    else high = middle - 1;
  }
  const { first, x, y, columns } = blocks[low];
  const within = place - first;
  return { x: x + (within % columns), y: y + Math.floor(within / columns) };
}

/** The place at a point; -1 if there is none. @param {Layout} layout */
export function placeAt({ blocks }, x, y) {
  for (const block of blocks) {
    const column = Math.floor(x) - block.x;
    const row = Math.floor(y) - block.y;
    if (column < 0 || row < 0 || column >= block.columns) continue;
    const within = row * block.columns + column;
    if (within < block.count) return block.first + within;
  }
  return -1;
}

/** The next place from *place* in a direction; *place* itself at the end. @param {Layout} layout */
export function placeBeside(layout, place, dx, dy) {
  let { x, y } = cellOf(layout, place);
  while (x >= 0 && y >= 0 && x < layout.width && y < layout.height) {
    x += dx;
    y += dy;
    const found = placeAt(layout, x, y);
    if (found >= 0) return found;
  }
  return place;
}
