"""Dynamic admission control: webhooks, which objects of the API describe.

What lives here: reading ``admissionregistration.k8s.io`` objects, matching requests against them,
and calling. What must not: the steps that every cluster has (:mod:`berth.cluster.writes.admission`,
which defines what a step is), and how the objects are stored (:mod:`berth.cluster.strategies`).
"""
