"""The composition root: constructs and connects the parts of a process.

What lives here: the scheduler service (``scheduler_service``), its HTTP applications and ports, its
API clients, and the processes of ``berth run`` and ``berth extender``. What must not: flags
(``berth.flags``), and anything that decides. Neighbours: ``berth.core``, ``berth.service`` and
``berth.server`` below; ``berth.embedded`` (``berth up``) and ``berth.commands`` above.
"""
