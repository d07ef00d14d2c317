"""The commands of ``berth``, a module each: parse flags, call, and print for people.

What lives here: the flags of one command, and what it prints. What must not: anything that another
module could want. ``berth.cli`` imports a command when it is called, so that none pays for the
imports of the others. Neighbours: ``berth.flags`` (flags that several commands have),
``berth.assembly`` (runs a scheduler), ``berth.embedded`` (runs a cluster).
"""
