"""Every metric family, declared once.

Those of ``/metrics`` are kube-scheduler's in ``kube``, and berth's own in ``berth``.
"""
