"""What flags that several commands share ask for.

What lives here: a module for each of ``berth.flags`` whose values are not enough, which makes parts
and settings of them. What must not: running these (``berth.assembly``, ``berth.embedded``), and
arguments of one command only (``berth.commands``).
"""
