"""The scheduler cache: nodes, the pods on them, and the pods assumed to be there.

What lives here: the cache (the one writer of the live
:class:`~berth.scheduler.framework.node_table.NodeTable`) and the order of nodes. What must not:
watching, deciding, I/O. Neighbours: ``berth.scheduler`` feeds it (event handlers, assume, forget);
plugins read the table.

A pod in the cache (spec §4.1):

    assume_pod          add_pod (the watch confirms it; moves it if bound elsewhere)
  ─────────────▶ ASSUMED ──────────────▶ ADDED ◀──┐ update_pod
                    │                      │ └────┘
                    │ forget_pod           │ remove_pod
                    ▼                      ▼
                 not known  ◀──────────────┘      (add_pod of an unknown pod: straight to ADDED)

There is no expiry: an assumed pod stays until it is forgotten, confirmed or removed.
"""
