"""berth, a Kubernetes pod scheduler: eight packages, each importing only those below it.

Their README.md say what they are for: ``cli``, ``tools``, ``service``, ``insight``, ``scheduler``
beside ``cluster``, ``kube``, ``runtime``. The public API: :mod:`berth.plugin`,
:mod:`berth.testing` and the ``Cluster`` of :mod:`berth.cluster`.
"""
