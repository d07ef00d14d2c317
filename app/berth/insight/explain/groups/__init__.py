"""Says why a pod group waits: what it has, what it lacks, and what would let it start.

What lives here: the explanation as data (:mod:`~berth.insight.explain.groups.explanation`), a trial
of the group that is undone before anything else runs (:mod:`~berth.insight.explain.groups.trial`),
what is missing (:mod:`~berth.insight.explain.groups.shortage`), and all of it as a sentence and as
tables. What must not: rules about groups, which are those of ``berth.scheduler`` and of the
plugins.
"""
