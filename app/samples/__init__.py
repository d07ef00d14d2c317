"""Files that berth hands out: manifests for ``berth up --sample``, templates for plugins.

No code: ``app.embedded`` loads the former, ``app.plugin_scaffold`` fills in the latter.
"""
