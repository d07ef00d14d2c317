"""The in-tree plugins, named in snake_case: a module each, or a package if it has parts of its own.

The plugin of a package is in its module ``plugin``. A plugin may know
``berth.scheduler.framework``, ``berth.kube.objects``, ``berth.kube.cel`` and
``berth_plugins.shared``; plugins do not know each other. :mod:`berth_plugins.registry` is the one
list of them.
"""
