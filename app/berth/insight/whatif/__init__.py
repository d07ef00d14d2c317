"""What-if questions: the scheduler's answer for a cluster that might be.

What lives here: the snapshot of a cluster as a file, the question that is asked of it, the changes
that it makes to a private copy, and the answer with its table. What must not: HTTP, the live state,
and rules of scheduling. Neighbours: ``berth.scheduler.core`` (the scheduler that decides, and the
cluster in memory that it works on), ``berth.service.server`` (asks for others, in a process of its
own), ``berth.cli.simulate`` (asks for people).

::

    snapshot --fill--> SimulatedCluster --changes--> cluster that might be --place--> answer

Decision (2026-11): a snapshot has what berth reads of an object, not the whole object; because that
is what decisions follow from and all that the scheduler keeps; instead of raw JSON, which would be
twenty times as much in memory. Decision (2026-11): a pod that a preemption removes does not count
afterwards; where the next pod of its controller would go is told beside it, found after everything
else is placed. Decision (2026-11): what admission goes by is listed when somebody asks and is no
declared kind; because deciding does not need it, and a scheduler that may not read it must start.
Decision (2026-11): DaemonSets are known by the pods they run, and by their manifests where a list
or a question brings them; instead of a watch, for which every installation would need one more
right.
"""
