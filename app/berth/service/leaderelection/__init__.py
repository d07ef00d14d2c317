"""Leader election: of several replicas the holder of a Lease schedules (spec §10).

What lives here: the candidate's decisions, which do no I/O (``candidate``); the Lease on the API
server (``lease_lock``); the loops that feed the one from the other (``elector``); and whether the
loop that schedules still turns (``loop_watch``). What must not: scheduling; the elector is handed
what to do while it leads. Neighbours: ``berth.kube.client`` below; ``berth.service``, which
connects the elector to the scheduler, above.

A lease alone does not stop a process that was frozen and does not know it yet. Therefore the
scheduler's writes pass :meth:`~berth.service.leaderelection.elector.LeaderElector.may_write` at the
last moment (:meth:`berth.kube.client.api_client.ApiClient.fenced`), which goes by the time of the
last renewal.

Decision (2026-11): stricter than kube-scheduler where that only means writing less. Leadership ends
as soon as the Lease names somebody else, instead of after the renew deadline; no write leaves later
than the renew deadline after the last renewal was sent; and records are compared to the microsecond
instead of the second, so that a standby never takes a renewal for an old one. Because a leader
that was stopped for half a minute must bind nothing when it wakes up; instead of trusting that it
notices. It leads on, and writes again, when a renewal succeeds: the resource version shows that
nobody held the Lease meanwhile.

Decision (2026-11): the lease is the last thing to starve. A thread with an event loop and
connections of its own renews it. With the scheduler's loop, a renewal took eight turns of a loop
that makes attempts in between, and answers were read too late. A thread gets the interpreter
within its switch interval (5 ms) whatever the main thread computes, and the fence is an attribute
that it sets. A process of its own would not wait for the interpreter, but costs 30 MB, and would
renew for a scheduler that is frozen or dead. A thread renews for one whose loop is stuck, too:
therefore it asks ``loop_watch``.

Decision (2026-11): whatever shows that a renewal has arrived counts, from when it was sent: an
answer that comes after later tries have begun, or the own record that a try meets. Time in which
the process stood still is not time in which it tried.

Decision (2026-11): tries to renew overlap. kube-scheduler waits up to half the renew deadline for
the answer to one request, so two that are lost cost it the lease. Here a try begins every retry
period, whether or not the last one was answered, and renewals are a retry period apart from
beginning to beginning: with the default times two lost tries leave four seconds for a third.
"""
