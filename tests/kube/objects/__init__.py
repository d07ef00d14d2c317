"""The values of Kubernetes objects: quantities, selectors, taints, requests, ports."""
