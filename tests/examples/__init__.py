"""The plugins of ``examples/plugins``, alone, in the harness and on an embedded cluster."""
