"""Dynamic resources: which devices there are, who has them, and finding some for a claim.

What lives here: ResourceSlices as pools (``pools``), claims with what is assumed of them
(``claims``), the search (``allocator``) and its parts. What must not: CEL selectors
(``berth/cel``), answers to the scheduler and writes to the API
(``berth_plugins/dynamic_resources.py`` has those).
"""
