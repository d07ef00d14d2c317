"""VolumeBinding: PersistentVolumes for the claims of a pod (spec §5.15).

What lives here: the plugin, which volumes match a claim and from where they can be used, what can
be provisioned, and what is decided until the API server says so. What other volume plugins need,
too, is in ``berth_plugins.shared``.
"""
