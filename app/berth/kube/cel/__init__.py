"""CEL expressions: those that select devices, compiled, costed and asked; those on API objects.

What lives here: the environment of Kubernetes (``selectors`` for devices, ``expressions`` for
objects of the API, ``functions`` and their parts), and what a selector may cost (``cost``, over the
checked ``ast``). What must not: claims and their search (``berth_plugins/dynamic_resources``), and
when a rule or a policy is evaluated (``berth.cluster``).

Decision (2026-11): selectors run on cel-expr-python, the CEL project's own binding of its C++
implementation; because it checks types, knows the macros and extensions that Kubernetes offers
(``cel.bind``, optionals, strings, sets) and takes microseconds; instead of cel-python and
common-expression-language, whose parsers lack optionals and ``cel.bind``.

Decision (2026-11): regular expressions of Kubernetes' own functions run on google-re2, which needs
time linear in the text; CEL promises RE2, and the library keeps its own copy to itself.
"""
