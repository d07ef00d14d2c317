import { count } from "../format.js";
import { list, nodeLink, podLink } from "../cells.js";
import { paged } from "../paged.js";

const COLUMNS = [
  { name: "device", title: "Device", nowrap: true, value: ({ device }) => device },
  { name: "pool", title: "Pool", nowrap: true, value: ({ pool }) => pool },
  { name: "driver", title: "Driver", value: ({ driver }) => driver },
  { name: "node", title: "Node", nowrap: true, value: ({ node }) => node, cell: ({ node }) => nodeLink(node) },
  { name: "claims", title: "Allocated to", value: (device) => device.allocations.map(({ claim }) => claim).join(" "), cell: holders },
  {
    name: "pods", title: "Pods", value: (device) => pods(device).join(" "),
    cell: (device) => list(pods(device), podLink),
  },
  { name: "attributes", title: "Attributes", value: ({ attributes }) => pairs(attributes) },
  { name: "capacity", title: "Capacity", optional: true, value: ({ capacity }) => pairs(capacity) },
  { name: "taints", title: "Taints", optional: true, value: ({ taints }) => taints.join(", ") },
];

/** The devices of dynamic resource allocation, with who has them. */
export const show = (view, route) =>
  paged(view, route, {
    path: "debug/devices",
    caption: "Devices",
    columns: COLUMNS,
    filters: [
      { name: "name", label: "Search driver/pool/device" },
      { name: "allocated", label: "Allocated", choices: [["true", "yes"], ["false", "no"]] },
      { name: "driver", label: "Driver" },
      { name: "node", label: "Node" },
      { name: "claim", label: "Claim" },
    ],
    empty: "No device matches. Drivers publish devices in ResourceSlices.",
    summary: ({ counts }) =>
      `${count(counts.devices)} devices in ${count(counts.slices)} ResourceSlices, ${count(counts.allocated)} allocated`,
    command: () => ["kubectl", "get", "resourceslices", "-o", "yaml"],
  });

const pods = ({ allocations }) => [...new Set(allocations.flatMap((allocation) => allocation.pods))];

function holders({ allocations }) {
  return list(allocations, ({ claim, consumedCapacity, adminAccess, isWritten }) => {
    const more = [
      pairs(consumedCapacity), adminAccess && "administrator's access", !isWritten && "not written yet",
    ].filter(Boolean).join(", ");
    return more ? `${claim} (${more})` : claim;
  });
}

const pairs = (values) => Object.entries(values).map(([name, value]) => `${name}=${value}`).join(", ");
