import { h } from "../dom.js";
import { counted } from "../format.js";
import { listen } from "./gestures.js";
import { cellOf, layOut, placeAt, placeBeside } from "./layout.js";
import { Painter } from "./paint.js";
import { ALL, kept, panned, pointAt, showing, zoomed } from "./view.js";

const HELP = "Arrow keys go from node to node, Enter opens one, plus and minus zoom, 0 shows all.";
const MARGIN = 8;

/**
 * The canvas with all nodes: what is in view, which cell has the focus, what is under the pointer.
 */
export class ClusterMap {
  /**
   * @param {AbortSignal} signal
   * @param {object} reactions nodes are numbers, as in Nodes
   * @param {(node: number, byKey: boolean) => void} reactions.open
   * @param {() => void} reactions.close
   * @param {(view: import("./view.js").View) => void} reactions.viewed
   * @param {(node: number) => string} reactions.describe
   */
  constructor(signal, reactions) {
    this.reactions = reactions;
    this.view = ALL;
    this.focus = -1; // a node, as is chosen
    this.chosen = -1;
    this.frame = 0;
    this.canvas = /** @type {HTMLCanvasElement} */ (
      h("canvas", { tabindex: "0", role: "application", "aria-roledescription": "map of nodes", "aria-describedby": "map-help" })
    );
    this.tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.told = h("p", { class: "told", role: "status" });
    const help = h("p", { class: "hidden", id: "map-help" }, HELP);
    this.box = h("div", { class: "map-box" }, this.canvas, this.tip);
    this.root = h("div", { class: "map" }, this.box, this.told, help);
    this.painter = new Painter(this.canvas);
    this.listen(signal);
  }

  listen(signal) {
    const { canvas } = this;
    const move = (to) => this.moveTo(to);
    listen(
      canvas,
      {
        pan: (dx, dy) => this.scene && move(panned(this.scene.layout, this.view, this.size, dx, dy)),
        zoom: (by, pixel) => this.zoom(by, pixel),
        fit: () => this.fit(),
        hover: (pixel) => this.hover(pixel),
        press: (pixel) => this.press(pixel),
        step: (dx, dy) => this.step(dx, dy),
        jump: (end) => this.setFocus(this.scene?.nodes.order.at(end === "first" ? 0 : -1) ?? -1),
        open: () => this.focus >= 0 && this.reactions.open(this.focus, true),
        close: () => this.reactions.close(),
      },
      signal,
    );
    canvas.addEventListener("focus", () => this.focused(), { signal });
    canvas.addEventListener("blur", () => this.schedule(), { signal });
    const observer = new ResizeObserver(() => this.resized());
    observer.observe(this.box);
    signal.addEventListener("abort", () => (observer.disconnect(), cancelAnimationFrame(this.frame)));
  }

  get size() {
    return this.painter.size;
  }

  /**
   * Show *nodes*; what is in view stays.
   * @param {Omit<import("./paint.js").Scene, "layout">} scene
   */
  set(scene) {
    const isSame = this.scene?.nodes === scene.nodes;
    const layout = isSame ? this.scene.layout : this.layOut(scene.nodes);
    if (this.scene && !isSame) {
      // Numbers of nodes are those of another list now.
      const renumbered = (node) => scene.nodes.index.get(this.scene.nodes.names[node]) ?? -1;
      this.focus = renumbered(this.focus);
      this.chosen = renumbered(this.chosen);
    }
    this.scene = { ...scene, layout };
    this.painter.set(this.scene);
    this.view = kept(layout, this.view, this.size);
    const { count: all, groups } = scene.nodes;
    this.canvas.setAttribute("aria-label", `${counted(all, "node")} in ${counted(groups.length, "group")}`);
    this.schedule();
  }

  /** Take over other colours of the theme. */
  recolor() {
    this.painter.readColors();
    if (this.scene) this.set(this.scene);
  }

  zoom(by, pixel) {
    if (this.scene) this.moveTo(zoomed(this.scene.layout, this.view, this.size, by, pixel));
  }

  fit() {
    if (this.scene) this.moveTo(kept(this.scene.layout, ALL, this.size));
  }

  /** Put a ring round the chosen node, and go there if it is not in view. */
  choose(node) {
    this.chosen = node;
    if (node >= 0) this.focus = node;
    if (node >= 0 && this.scene) this.reveal(node);
    this.schedule();
  }

  moveTo(view) {
    this.view = view;
    this.tip.hidden = true;
    this.reactions.viewed(view);
    this.schedule();
  }

  layOut(nodes) {
    const { width, height } = this.size;
    return layOut(nodes.groups.map((group) => group.nodes.length), { width: width - 2 * MARGIN, height: height - MARGIN });
  }

  resized() {
    const { clientWidth: width, clientHeight: height } = this.box;
    if (!width || (width === this.size.width && height === this.size.height)) return;
    this.painter.resize(width, height);
    if (!this.scene) return;
    this.scene.layout = this.layOut(this.scene.nodes);
    this.painter.set(this.scene);
    this.view = kept(this.scene.layout, this.view, this.size);
    this.draw(); // now: a canvas that was resized is empty
  }

  schedule() {
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.scene) return;
    const { placeOf } = this.scene.nodes;
    const place = (node) => (node >= 0 ? placeOf[node] : -1);
    const focus = document.activeElement === this.canvas ? place(this.focus) : -1;
    this.painter.draw(this.view, { focus, chosen: place(this.chosen) });
    this.canvas.style.touchAction = this.view.zoom > 1 ? "none" : "pan-y";
  }

  /** The node at a pixel; -1 if there is none. */
  nodeAt(pixel) {
    if (!this.scene) return -1;
    const { layout, nodes } = this.scene;
    const point = pointAt(layout, this.view, this.size, pixel);
    const place = placeAt(layout, point.x, point.y);
    return place < 0 ? -1 : nodes.order[place];
  }

  hover(pixel) {
    const node = pixel ? this.nodeAt(pixel) : -1;
    this.tip.hidden = node < 0;
    if (!pixel || node < 0) return;
    this.tip.textContent = this.reactions.describe(node);
    const { width } = this.size;
    const onRight = pixel.x < width / 2;
    this.tip.style.setProperty("inset", `${pixel.y + 14}px ${onRight ? "auto" : `${width - pixel.x + 6}px`} auto ${onRight ? `${pixel.x + 12}px` : "auto"}`);
  }

  press(pixel) {
    const node = this.nodeAt(pixel);
    this.canvas.focus({ preventScroll: true });
    if (node < 0) return;
    this.setFocus(node);
    this.reactions.open(node, false);
  }

  focused() {
    if (this.focus < 0 && this.scene?.nodes.count) this.setFocus(this.scene.nodes.order[0]);
    else this.schedule();
  }

  step(dx, dy) {
    if (!this.scene || this.focus < 0) return;
    const { layout, nodes } = this.scene;
    this.setFocus(nodes.order[placeBeside(layout, nodes.placeOf[this.focus], dx, dy)]);
  }

  setFocus(node) {
    if (node < 0) return;
    this.focus = node;
    this.told.textContent = this.reactions.describe(node);
    this.reveal(node);
    this.schedule();
  }

  reveal(node) {
    const { layout, nodes } = this.scene;
    const view = showing(layout, this.view, this.size, cellOf(layout, nodes.placeOf[node]));
    if (view !== this.view) this.moveTo(view);
  }
}
