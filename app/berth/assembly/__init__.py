"""Puts processes together: clients, a scheduler service, ports, reloading.

What lives here: what ``berth run``, ``berth extender`` and ``berth up`` have in common. What must
not: flags (``berth.flags``), and anything that decides. Neighbours: ``berth.main`` (makes the
service), ``berth.server`` (endpoints), ``berth.commands`` (parse flags and call).
"""
