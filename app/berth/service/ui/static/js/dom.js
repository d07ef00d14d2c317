/** @typedef {Node | string | number | null | undefined | false | Child[]} Child */
/** @typedef {Record<string, any>} Attributes */

/**
 * Return an HTML element. Strings and numbers become text, never markup.
 *
 * Of the attributes, functions named `on...` listen to that event, `style` is an object of CSS
 * properties, true is an attribute without a value; null, undefined and false are left out.
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

/**
 * The same for SVG.
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function s(tag, attributes = {}, ...children) {
  return build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/**
 * Put *children* in place of what *element* contains.
 * @template {Element} T
 * @param {T} element
 * @param {...Child} children
 * @returns {T}
 */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "style") setStyle(element, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...nodes(children));
  return element;
}

function setStyle(element, properties) {
  // Through the CSSOM: the Content-Security-Policy forbids style attributes in markup.
  for (const [name, value] of Object.entries(properties)) element.style.setProperty(name, value);
}

function nodes(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}
