"""Takes pods from the queue, finds nodes for them, binds them.

What lives here: the scheduling cycle and the binding cycle (spec §2), what happens on failure,
which watch events change queue and cache (spec §11), and the record of every decision. What must
not: HTTP, and knowledge of single plugins. Neighbours below: ``berth.profile``, ``berth.queue``,
``berth.cache``, ``berth.informer``, ``berth.extender``, ``berth.client``; above: ``berth.server``,
``berth.main``.
"""
