"""Flags that several commands share, and what they mean.

What lives here: a module per subject, which adds flags to a parser and makes settings of what was
given. What must not: doing what the flags ask for (``berth.assembly``, ``berth.embedded``).
"""
