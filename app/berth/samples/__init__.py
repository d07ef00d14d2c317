"""Files that berth hands out: manifests for ``berth up --sample``, templates for plugins.

No code: ``berth.embedded`` loads the former, ``berth.plugin_scaffold`` fills in the latter.
"""
