"""Dynamic resources: which devices there are, who has them, and finding some for a claim.

What lives here: ResourceSlices as pools (``pools``), CEL selectors (``selectors``), claims with
what is assumed of them (``claims``), the search (``allocator``) and its parts. What must not:
answers to the scheduler and writes to the API (``plugins/dynamic_resources.py`` has those).

Decision (2026-11): selectors run on cel-expr-python, the CEL project's own binding of its C++
implementation; because it checks types, knows the macros and extensions that Kubernetes offers
(``cel.bind``, optionals, strings, sets) and takes microseconds; instead of cel-python and
common-expression-language, whose parsers lack optionals and ``cel.bind``.
"""
