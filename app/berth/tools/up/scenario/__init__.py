"""Scenario files: a cluster, steps at times, and what is expected to come of them.

What lives here: the file format (``types``, ``actions``, ``expectations``), reading it (``load``),
the cluster that a scenario runs on (``simulation``), what is seen of it (``observed``), evaluating
expectations (``checks``) and performing actions (``action_runner``, ``drain``), and the run of a
file (``runner``, ``up``). What must not: knowledge of a kind or controller beyond its API.

A scenario is a client: all that it does and sees goes through the API, except that it starts and
stops machines and the scheduler, and asks the scheduler to explain.
"""
