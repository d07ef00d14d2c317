"""The overview: what a running scheduler measures of itself once a second.

What lives here: who looks (``sampler``), the pods that wait for longest (``oldest_pending``), and
what is wrong, in words (``problems``). The numbers and their rings are in
``berth.scheduler.metrics.overview``, the endpoints in ``berth.service.server.scheduler.overview``.
"""
