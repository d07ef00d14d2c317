"""The API as HTTP: routing, negotiation, lists and watches, discovery and OpenAPI.

What a write does to an object is in :mod:`berth.cluster.writes`.
"""
