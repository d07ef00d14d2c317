"""Controllers: what makes pods for workloads, volumes and devices for pods, and sweeps up after.

Each controller is two things: a synchronous part that looks at objects and returns what is to be
done (a :class:`~berth.cluster.controllers.controller.Plan`), and
:class:`berth.cluster.controllers.loop.Loop`, the one asynchronous shell that feeds it and carries
its plans out. They are clients of the API and work against any API server. What must not live here:
the store, the server, admission. Neighbours: ``berth.kube.client`` (requests),
``berth.kube.informer`` (watches), ``berth.cluster.kubelet``.

Decision (2026-11): controllers name the pods they create instead of leaving it to the server, with
the words that the server would use; because a create whose answer is lost can then be recognised
when the watch shows it, so there are never too many; instead of counting expectations.
"""
