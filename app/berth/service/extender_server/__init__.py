"""The extender that berth is for another scheduler (spec §9).

What lives here: the verbs (``verbs``), their args and results on the wire (``wire``), the nodes
that a call is about (``candidate_nodes``), what a profile says of them (``evaluation``), and
binding pods for the other scheduler without taking the same room twice (``bindings``). What must
not: HTTP, which is ``berth.service.server.extender``'s. Neighbours: ``berth.scheduler.profile`` and
``berth.scheduler.cache`` below; ``berth.scheduler.extender`` is the other side of the wire, for
when berth is the one that calls.

Decision (2026-11): plugins see the whole cluster as our watches know it, and the result is for the
nodes of the call. The other scheduler leaves out nodes that it has rejected itself; topology spread
and pod affinity would go wrong without these.

Decision (2026-11): a pod is filtered and scored as if it were on no node yet, even if it was
assumed to be on one for an earlier bind, or is. The other scheduler would not ask if it had not
given up on that bind; counted against itself, the pod would not fit where its own room is. If the
bind has left by then, or been made, and the pod fits that node still, it fits no other: the bind
for another would fail, and the one for that node is answered by what comes of it.

Decision (2026-11): a node object that is sent to us counts in place of our own version of it, but
for its container images; pods are always those of our cache. A node that we have never heard of
has no pods and no images.

Decision (2026-11): scores say how the nodes of one call compare: the worst total of the
profile becomes 0, the best 10, what lies between is rounded down, and when all are equal all are 0.
The other scheduler adds scores up, so only differences count, and these would disappear if 0 to 10
were the whole range that totals could ever have: most plugins give nearly the same to nearly every
node. It is how InterPodAffinity makes its own scores comparable.
"""
