"""The subcommands of ``berth``, one module each: ``main(argv)`` returns the exit status.

What lives here: flags, and what a command says to people. What must not: anything another module
could want; a command only connects what lives elsewhere. ``app.cli`` imports a command when it is
called for, so none pays for the imports of the others. Neighbours: ``app.main`` (puts a scheduler
together), ``app.embedded.up`` and ``app.embedded.cluster`` (the embedded cluster).
"""
