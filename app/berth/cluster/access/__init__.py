"""Access control: users and tokens, RBAC, impersonation, and the reviews that ask about them.

What lives here: everything between the arrival of a request and its handling, and what answers
TokenReviews and SubjectAccessReviews. What must not: how roles and service accounts are stored and
validated, which is as for any kind (``berth.cluster.kinds``, ``berth.cluster.strategies``).
Neighbour: ``berth.cluster.http.server`` asks :class:`~berth.cluster.access.gate.Gate` before
anybody else.

Not here: client certificates, and the Node authorizer (kubelets have the role ``system:node``).
"""
