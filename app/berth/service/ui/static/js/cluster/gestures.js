/**
 * @typedef {object} Reactions in CSS pixels of the canvas
 * @property {(dx: number, dy: number) => void} pan
 * @property {(by: number, pixel?: {x: number, y: number}) => void} zoom
 * @property {() => void} fit
 * @property {(pixel: {x: number, y: number} | null) => void} hover
 * @property {(pixel: {x: number, y: number}) => void} press
 * @property {(dx: number, dy: number) => void} step the focus goes to the next cell
 * @property {(end: "first" | "last") => void} jump
 * @property {() => void} open
 * @property {() => void} close
 */

const CLICK_PIXELS = 5;
const ZOOM_OF_KEY = 1.5;
const LINE_PIXELS = 16;

/**
 * Listen to the mouse, fingers and keys on *canvas*.
 * @param {HTMLCanvasElement} canvas @param {Reactions} reactions @param {AbortSignal} signal
 */
export function listen(canvas, reactions, signal) {
  pointers(canvas, reactions, signal);
  canvas.addEventListener("wheel", (event) => wheel(event, reactions), { passive: false, signal });
  canvas.addEventListener("keydown", (event) => key(event, reactions), { signal });
}

function pointers(canvas, { pan, zoom, hover, press }, signal) {
  /** @type {Map<number, {x: number, y: number}>} */
  const down = new Map();
  let moved = 0;
  const pixel = (event) => ({ x: event.offsetX, y: event.offsetY });

  const begin = (event) => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    if (!down.size) moved = 0;
    down.set(event.pointerId, pixel(event));
  };
  const move = (event) => {
    const before = down.get(event.pointerId);
    if (!before) return hover(event.pointerType === "mouse" ? pixel(event) : null);
    const now = pixel(event);
    const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      zoom(distance(now, other) / Math.max(distance(before, other), 1), middle(now, other));
      moved = CLICK_PIXELS;
    }
    moved += distance(now, before);
    const share = other ? 0.5 : 1;
    if (moved >= CLICK_PIXELS) pan((now.x - before.x) * share, (now.y - before.y) * share);
    down.set(event.pointerId, now);
  };
  const end = (event) => {
    if (down.delete(event.pointerId) && !down.size && moved < CLICK_PIXELS && event.type === "pointerup") press(pixel(event));
  };
  canvas.addEventListener("pointerdown", begin, { signal });
  canvas.addEventListener("pointermove", move, { signal });
  canvas.addEventListener("pointerup", end, { signal });
  canvas.addEventListener("pointercancel", end, { signal });
  canvas.addEventListener("pointerleave", () => hover(null), { signal });
}

function wheel(event, { zoom }) {
  event.preventDefault();
  const pixels = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PIXELS : 1);
  zoom(Math.exp(-pixels / (event.ctrlKey ? 100 : 400)), { x: event.offsetX, y: event.offsetY });
}

function key(event, { zoom, fit, step, jump, open, close }) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const actions = {
    ArrowLeft: () => step(-1, 0),
    ArrowRight: () => step(1, 0),
    ArrowUp: () => step(0, -1),
    ArrowDown: () => step(0, 1),
    Home: () => jump("first"),
    End: () => jump("last"),
    "+": () => zoom(ZOOM_OF_KEY),
    "=": () => zoom(ZOOM_OF_KEY),
    "-": () => zoom(1 / ZOOM_OF_KEY),
    0: fit,
    Enter: open,
    " ": open,
    Escape: close,
  };
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

const distance = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);
const middle = (a, b) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
