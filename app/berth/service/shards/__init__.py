"""Shards of a running replica: Leases of members and slots on the API server, and who keeps them.

What lives here: reading and writing the Leases (``leases``), catching up with what the last holder
of a slot has written (``catch_up``), and the loop that follows
:class:`berth.scheduler.shards.claims.Claims` (``keeper``). What must not: decisions about slots or
pods. Neighbours: ``berth.scheduler.shards`` below, ``berth.service.leaderelection`` beside it.
"""
