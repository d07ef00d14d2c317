"""Extenders: HTTP services that have a say in scheduling (spec §9).

What lives here: whom to ask about which pod (:mod:`.extenders`), the verbs of one extender
(:mod:`.extender`), its wire form (:mod:`.wire`), objects as the API server wrote them
(:mod:`.whole_objects`), and the connection with its circuit breaker (:mod:`.client`). All of it is
told nodes and victims by name and answers by name; what follows from the answers on a table that
may have changed meanwhile is for ``berth.scheduler.with_extenders``. Neighbours below:
``berth.scheduler.config``, ``berth.scheduler.framework``, ``berth.kube.objects``. The other side of
the wire is in ``berth.service.server``.

Decision (2026-11): only the names of the nodes in an answer count. kube-scheduler takes over the
node objects that an extender without nodeCacheCapable sends back, without the pods on them, and
then scores these nodes as if they were empty; because that makes full nodes look good, we score
what is known of the nodes instead.
"""
