"""Flags that several commands share.

What lives here: a module per subject, which adds flags to a parser. What must not: making what the
flags ask for (``berth.cli.settings``), and imports that take long: see ``berth.cli.parsers``.
"""
