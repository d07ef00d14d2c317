"""Kubernetes for clients: objects, API client, informers. See README.md."""
