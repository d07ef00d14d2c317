"""What berth answers when another scheduler asks it, as an extender of that one (spec §9).

What lives here: the questions and answers on the wire (:mod:`.wire`), the nodes that a question is
about (:mod:`.asked_nodes`), what a profile says of them (:mod:`.judging`), and binding pods for the
other scheduler without taking the same room twice (:mod:`.bindings`). What must not: HTTP, which is
``berth.server``'s. Neighbours: ``berth.profile`` and ``berth.cache`` below; ``berth.extender`` is
the other side of the wire, for when berth is the one that asks.

Decision (2026-11): a question is judged on the whole cluster as our watches know it, and answered
for the nodes that were asked about. The other scheduler leaves out nodes that it has ruled out
itself; spreading and affinity between pods would go wrong without these.

Decision (2026-11): a pod that is asked about is judged as if it were on no node yet, even if it was
assumed to be on one for an earlier bind, or is. The other scheduler would not ask if it had not
given up on that bind; counted against itself, the pod would not fit where its own room is. If the
bind has left by then, or been made, and the pod fits that node still, it fits no other: the bind
for another would fail, and the one for that node is answered by what comes of it.

Decision (2026-11): a node object that is sent to us counts in place of our own version of it, but
for its container images; pods are always those of our cache. A node that we have never heard of
has no pods and no images.

Decision (2026-11): scores say how nodes compare among those asked about: the worst total of the
profile becomes 0, the best 10, what lies between is rounded down, and when all are equal all are 0.
The other scheduler adds scores up, so only differences count, and these would disappear if 0 to 10
were the whole range that totals could ever have: most plugins give nearly the same to nearly every
node. It is how InterPodAffinity makes its own scores comparable.
"""
