"""The in-tree plugins: one module each, named after the plugin in snake_case.

A plugin may know ``app.framework`` and ``app.objects`` and nothing else; plugins do not know each
other. :mod:`plugins.registry` is the one list of them.
"""
