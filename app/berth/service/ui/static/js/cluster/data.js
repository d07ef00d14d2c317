import { send, url } from "../api.js";

/** Marks of nodes, as bits; drawn on cells that are large enough. */
export const MARKS = { NOT_READY: 1, UNSCHEDULABLE: 2, TAINTED: 4 };

const NOT_READY = /^node\.kubernetes\.io\/(not-ready|unreachable)[=:]/;
const NUMBERS = /\d+/g;

/** An answer that is read again only when it has changed. */
export class Feed {
  /** @param {string} path @param {Record<string, any>} [params] */
  constructor(path, params = {}) {
    this.url = url(path, params);
    this.data = null;
    this.tag = "";
  }

  /** Return the answer, the same object while nothing has changed. Throws as `send`. */
  async read(signal) {
    const headers = this.tag ? { "If-None-Match": this.tag } : {};
    const response = await send(this.url, { signal, headers });
    if (response.status !== 304) {
      this.data = await response.json();
      this.tag = response.headers.get("ETag") ?? "";
    }
    return this.data;
  }
}

/** All nodes, with the order in which they are drawn. */
export class Nodes {
  /** @param {any} told as `/debug/cluster` has it @param {Nodes | null} earlier */
  constructor(told, earlier) {
    this.version = told.version;
    this.names = told.names;
    this.count = told.names.length;
    this.groupBy = told.groupBy;
    this.taintSets = told.taintSets.map((set) => set.map(taintText));
    this.taintSet = told.taintSet;
    this.resources = told.resources;
    this.marks = marksOf(told);
    this.group = told.group;
    const isSame = earlier && sameList(earlier.names, told.names);
    /** By node, its rank by name. @type {Int32Array} */
    this.rank = isSame ? earlier.rank : ranks(told.names);
    /** By name. @type {Map<string, number>} */
    this.index = isSame ? earlier.index : new Map(told.names.map((name, i) => [name, i]));
    this.groups = this.inOrder(told.groups);
    this.place();
  }

  isNotReady(node) {
    return (this.marks[node] & MARKS.NOT_READY) > 0;
  }

  /** What is the value of the label of a node's group; null: it has none. */
  groupOf(node) {
    return this.groups[this.groupRank[this.group[node]]].value;
  }

  inOrder(values) {
    const keys = values.map((value) => (value === null ? "\uffff" : padded(value)));
    const order = [...keys.keys()].sort((a, b) => compare(keys[a], keys[b]));
    this.groupRank = new Int32Array(values.length);
    order.forEach((group, rank) => (this.groupRank[group] = rank));
    return order.map((group) => ({ value: values[group], nodes: new Int32Array(0) }));
  }

  /** Put nodes in order of groups, then names. */
  place() {
    const { count, group, groupRank, rank } = this;
    const starts = new Int32Array(this.groups.length + 1);
    for (let i = 0; i < count; i += 1) starts[groupRank[group[i]] + 1] += 1;
    for (let g = 0; g < this.groups.length; g += 1) starts[g + 1] += starts[g];
    const byRank = new Int32Array(count);
    for (let i = 0; i < count; i += 1) byRank[rank[i]] = i;
    const next = starts.slice();
    /** By place, the node. */
    this.order = new Int32Array(count);
    /** By node, the place. */
    this.placeOf = new Int32Array(count);
    for (const node of byRank) {
      const place = next[groupRank[group[node]]]++;
      this.order[place] = node;
      this.placeOf[node] = place;
    }
    this.groups.forEach((each, g) => (each.nodes = this.order.subarray(starts[g], starts[g + 1])));
  }
}

function marksOf({ names, taintSets, taintSet, unschedulable }) {
  const ofSet = taintSets.map((set) => (set.length ? MARKS.TAINTED : 0) | (set.some((taint) => NOT_READY.test(taint)) ? MARKS.NOT_READY : 0));
  const marks = Uint8Array.from(names, (_, i) => ofSet[taintSet[i]]);
  for (const i of unschedulable) marks[i] |= MARKS.UNSCHEDULABLE;
  return marks;
}

function ranks(names) {
  const keys = names.map(padded);
  const order = Int32Array.from(keys.keys()).sort((a, b) => compare(keys[a], keys[b]));
  const found = new Int32Array(names.length);
  order.forEach((node, rank) => (found[node] = rank));
  return found;
}

/** A taint as kubectl writes it, without the `=` of an empty value. @param {string} taint */
export const taintText = (taint) => taint.replace("=:", ":");

/** For an order in which node-9 comes before node-10. */
const padded = (text) => text.replace(NUMBERS, (digits) => digits.padStart(10, "0"));
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const sameList = (a, b) => a.length === b.length && a.every((each, i) => each === b[i]);
