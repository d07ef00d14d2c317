"""The scheduling queue: which pod is tried next, and when a rejected one is worth another try.

What lives here: :class:`~berth.scheduler.queue.scheduling_queue.SchedulingQueue`, the sub-queues
that it moves pods between, the nominator, and the derivation of cluster events from changed
objects. Every change of state is synchronous and complete when the method returns. The only
coroutines wait for work or for the next flush, or yield to others while they look at all pods. What
must not: scheduling decisions (``berth.scheduler``), running plugins other than PreEnqueue
(``berth.scheduler.profile``), I/O, and metrics, which read the counts that are kept here.

A pod is in exactly one of these places::

    add -> PreEnqueue -> active --pop--> in flight --done--> gone
                |          ^   ^            |
              gated        |   |  add_unschedulable_if_not_present
                |          |   |            |
                +- event --+   +- backoff <-+-> unschedulable
                                     ^                |
                                     +---- event -----+

Where PodGroups are entities (1.37), :mod:`berth.scheduler.queue.entities` has the same places for
whole groups, and two more for pods whose group is not there to join. All else asks an entry of a
sub-queue for its ``pods``.

Pods that wait for events are indexed by who rejected them and grouped by signature
(:mod:`berth.scheduler.framework.pod_signature`), so that a queueing hint is asked once for all pods
of a group, and only about groups that the indexes of the hint find
(:mod:`berth.scheduler.queue.rejected_pods`). A failed attempt stands for its signature as long as a
pod of it waits and nothing has happened that may help
(:mod:`berth.scheduler.queue.failure_cache`). The duration of a hint is observed each time that
it is asked, which is less often than in kube-scheduler.

Decision (2026-11): the active queue is a plain heap and has no module of its own, because what
upstream's active_queue.go adds to the heap is locking; instead of a class that only delegates.
"""
