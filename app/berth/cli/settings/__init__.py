"""Flags shared by several commands, as what they ask for.

What lives here: a module for each of ``berth.cli.flags`` whose values are not enough, which makes
parts and settings of them. What must not: running these (``berth.service``, ``berth.tools.up``),
and arguments of one command only (``berth.cli.commands``).
"""
