"""The way of every write: admission, strategy, store.

HTTP is not known here; refusals are :class:`~berth.cluster.errors.StatusError`.
"""
