"""DynamicResources: devices for the ResourceClaims of a pod (spec §5.17).

What lives here: the plugin, ResourceSlices as pools (``pools``), claims with their allocations in
flight (``claim_tracker``), the search (``allocator``) and its parts, and what is written
(``claim_writes``). What must not: CEL selectors (``berth.kube.cel``).
"""
