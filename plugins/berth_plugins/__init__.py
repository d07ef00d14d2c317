"""The in-tree plugins: one module each, named after the plugin in snake_case.

A plugin may know ``berth.framework`` and ``berth.objects`` and nothing else; plugins do not know
each other. :mod:`berth_plugins.registry` is the one list of them.
"""
