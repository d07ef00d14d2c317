"""The commands of ``berth``, a module each: make what the arguments ask for, and print for people.

What lives here: what one command does, and what it prints. What must not: its arguments, and
anything that another module could want. ``berth.cli`` imports a command when it is called, so that
none pays for the imports of the others. Neighbours: ``berth.cli.parsers`` (the arguments),
``berth.cli.settings`` (what shared flags ask for), ``berth.service`` (runs a scheduler),
``berth.tools.up`` (runs a cluster).
"""
