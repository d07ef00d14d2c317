"""Which of several replicas schedules: the holder of a Lease (spec §10).

What lives here: the candidate's decisions, which do no I/O (``candidate``); the Lease on the API
server (``lease_lock``); and the loops that feed the one from the other (``elector``). What must
not: scheduling; the elector is handed what to do while it leads. Neighbours: ``berth.client``
below; ``berth.assembly``, which connects the elector to the scheduler, above.

A lease alone does not stop a process that was frozen and does not know it yet. Therefore the
scheduler's writes pass :meth:`~berth.leaderelection.elector.LeaderElector.may_write` at the last
moment (:meth:`berth.client.api_client.ApiClient.fenced`), which goes by the time of the last
renewal.

Decision (2026-11): stricter than kube-scheduler where that only means leading less. Leadership ends
as soon as the Lease names somebody else, instead of after the renew deadline; no write leaves later
than the renew deadline after the last renewal was sent; and records are compared to the microsecond
instead of the second, so that a standby never takes a renewal for an old one. Because a leader
that was stopped for half a minute must bind nothing when it wakes up; instead of trusting that it
notices.

Decision (2026-11): tries to renew overlap. kube-scheduler waits up to half the renew deadline for
the answer to one request, so two that are lost cost it the lease. Here a try begins every retry
period, whether or not the last one was answered, and renewals are a retry period apart from
beginning to beginning: with the default times two lost tries leave four seconds for a third.
"""
