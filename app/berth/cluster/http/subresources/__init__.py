"""Requests that a real API server hands to a kubelet: logs, and connections to containers.

No container runs on a hollow node, and nothing listens there. So logs are told by what the pod
says of itself, and every connection ends as with a kubelet that cannot be reached.
"""
