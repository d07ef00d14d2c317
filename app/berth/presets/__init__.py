"""KubeSchedulerConfigurations to begin with, by name: ``--preset``.

The Helm chart has the same files; a test compares them.
"""
