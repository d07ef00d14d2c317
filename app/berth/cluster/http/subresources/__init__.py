"""Requests that a real API server hands to a kubelet: logs, and connections to containers.

Kubelets that run in this process answer for containers whose commands they interpret. Else logs are
told by what the pod says of itself, and a connection ends as with a kubelet that cannot be reached.
"""
