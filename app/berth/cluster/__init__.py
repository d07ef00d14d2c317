"""The embedded cluster: a Kubernetes REST API in one process, for laptops and tests.

What lives here: the object store, the API server over HTTP, users and their rights, admission,
controllers and hollow kubelets. Controllers and kubelets are clients of the API like any other and
work against a real API server too. What must not: anything of the scheduler; it does not know the
embedded cluster exists. Neighbours: ``berth.kube.objects`` (quantities, selectors),
``berth.kube.client`` (how controllers and kubelets speak to the API). Objects are plain dicts here,
because a server must keep fields that it does not know.
"""
