"""The kinds of the API.

- :mod:`~berth.cluster.kinds.registry`: the kinds that are served at present; they come and go;
- :mod:`~berth.cluster.kinds.builtin`: those that a server has from the start;
- :mod:`~berth.cluster.kinds.custom`: those that CustomResourceDefinitions define.

A kind is data (:mod:`berth.cluster.schemas`) and, where it behaves, one entry in ``builtin`` that
names its strategy and its cells.
"""
