"""The subcommands of ``berth``, one module each: ``main(argv)`` returns the exit status.

What lives here: flags, and what a command says to people. What must not: anything another module
could want; a command only connects what lives elsewhere. ``berth.cli`` imports a command when it is
called for, so none pays for the imports of the others. Neighbours: ``berth.main`` (puts a scheduler
together), ``berth.embedded.up`` and ``berth.embedded.cluster`` (the embedded cluster).
"""
