import { ApiError, get, url } from "../api.js";
import { fill, h } from "../dom.js";
import { age, count, counted, moment } from "../format.js";
import { repeat } from "../repeat.js";
import { sources } from "../sources.js";
import { empty } from "../states.js";
import { table } from "../table.js";

const SECONDS = 5;
const PATH = "debug/shards";
const NOT_FOUND = 404;

const MEMBERS = [
  { name: "member", title: "Replica", value: ({ identity }) => identity },
  { name: "pool", title: "Pool", optional: true, value: ({ pool }) => pool },
  { name: "count", title: "Number of slots", numeric: true, value: ({ slots }) => slots.length, cell: ({ slots }) => count(slots.length) },
  { name: "silent", title: "Lease unchanged for", numeric: true, value: ({ silentSeconds }) => silentSeconds, cell: ({ silentSeconds }) => age(silentSeconds) },
  { name: "slots", title: "Slots", fixed: true, value: ({ slots }) => slots.join(" "), cell: ({ slots }) => ranges(slots) },
];

const CHANGES = [
  { name: "at", title: "At", nowrap: true, value: ({ at }) => at, cell: ({ at }) => moment(at) },
  { name: "what", title: "What", value: ({ what }) => what },
  { name: "slot", title: "Slot", numeric: true, value: ({ slot }) => slot },
  { name: "member", title: "Of", value: ({ member }) => member },
];

/** The replicas that schedule at once, and who has which slots. @param {import("../main.js").View} view */
export async function show(view) {
  const about = h("p", {});
  const members = table({ caption: "Replicas", columns: MEMBERS, empty: "No replica has joined.", search: false });
  const changes = table({ caption: "What this replica did last", columns: CHANGES, empty: "Nothing yet.", search: false });
  try {
    await repeat(SECONDS, view.signal, async () => {
      const shards = await get(PATH, {}, { signal: view.signal });
      fill(about, summary(shards));
      members.update(shards.members);
      changes.update(shards.changes);
    });
  } catch (error) {
    if (!(error instanceof ApiError && error.status === NOT_FOUND)) throw error;
    fill(view.root, empty("This scheduler shares its nodes with no other: that is for berth run --shards."));
    return;
  }
  const leases = ["kubectl", "get", "leases", "-A"];
  fill(view.root, about, members, changes, sources({ json: url(PATH), command: leases }));
}

function summary({ identity, slots, deciding, leaving, free, label, offersUnderWay }) {
  return [
    `${identity} decides about ${count(deciding.length)} of ${counted(slots, "slot")}`,
    label && `by ${label}`,
    leaving.length > 0 && `${count(leaving.length)} of them are being given away`,
    free.length > 0 && `nobody has ${ranges(free)}`,
    `${counted(offersUnderWay, "pod")} offered to others`,
  ].filter(Boolean).join(", ") + ".";
}

/** Numbers in order, as in 0–3, 7. @param {number[]} numbers */
function ranges(numbers) {
  const runs = /** @type {number[][]} */ ([]);
  for (const number of numbers) {
    const run = runs.at(-1);
    if (run && run[1] === number - 1) run[1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([first, last]) => (first === last ? String(first) : `${first}–${last}`)).join(", ");
}
