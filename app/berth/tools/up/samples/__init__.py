"""Files that berth hands out: manifests for ``berth up --sample``, templates for plugins.

No code: ``berth.tools.up`` loads the former, ``berth.cli.plugin_scaffold`` fills in the latter.
"""
