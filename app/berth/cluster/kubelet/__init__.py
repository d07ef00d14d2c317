"""Hollow kubelets: nodes that say they run pods. No process ever starts.

What lives here: how nodes look, which pods they take, how pods go from Pending to Running to gone,
and the shell that reports it. What must not: deciding where pods go. They are clients of the API
and work against any API server. Neighbours: ``berth.cluster.actions``,
``berth.cluster.delay_queue`` (one queue drives all nodes and pods), ``berth.kube.informer`` (one
watch of all nodes, and one of all pods).
"""
