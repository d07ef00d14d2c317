"""Events of controllers and kubelets: core/v1, as client-go's ``tools/record`` writes them.

The scheduler writes events.k8s.io/v1 with :mod:`berth.kube.client.events`, as the real one does.
"""
