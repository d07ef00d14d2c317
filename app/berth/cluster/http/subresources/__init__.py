"""What a real API server asks a kubelet for: logs, and connections to containers and ports.

No container runs on a hollow node, and nothing listens there. So logs are told by what the pod
says of itself, and every connection ends as with a kubelet that cannot be reached.
"""
