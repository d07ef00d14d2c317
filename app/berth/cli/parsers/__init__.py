"""The command line of each command: a module with its argument parser.

What lives here: ``parse`` of each command, which checks what can be checked without doing anything,
and ends the process on ``--help`` and on wrong usage. What must not: imports of anything that takes
long to import, such as numpy, pydantic, or what speaks HTTP. ``berth.cli`` imports the command
itself only after its arguments were parsed. Neighbours: ``berth.cli.flags`` (flags that several
commands have), ``berth.cli.commands`` (does what was asked for).
"""
