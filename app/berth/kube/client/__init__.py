"""The Kubernetes API as berth speaks it: raw bytes, over connections that stay open.

What lives here: the transport (connections, credentials, errors, discovery), what the scheduler
writes with the bodies that kube-scheduler sends (``writes``, spec §2.11), and the event recorder
(``events``). What must not: deciding what to write, and keeping what was read
(:mod:`berth.kube.informer` does). Neighbours: ``berth.kube.objects`` below; the scheduler,
``berth.kube.informer`` and the embedded cluster's controllers above. Only this package knows
aiohttp and kubernetes-asyncio.

Decision (2026-11): bodies are built and answers read without kubernetes-asyncio's generated models;
because they cost more than the requests they carry, and its Binding cannot read the answer to a
successful bind. The library is used for what it is good at: exec plugins, token refresh, and
whatever else a kubeconfig may ask for. It is imported only when one of these is asked for, as that
takes half a second (:mod:`berth.kube.client.plain_kubeconfig`).
"""
