"""The cluster as last heard of: one reflector per kind of object.

What lives here: listing and watching for ever, the store of what was decoded, and telling a handler
what changed. What must not: what a change means (handlers belong to the scheduler and to the
controllers of the embedded cluster), and HTTP, which is :mod:`berth.client`'s, the neighbour below.

A reflector's guarantee to its handler: every object that is in the store was announced by
``on_add``, every change by ``on_update`` with the object announced before, and every disappearance
by ``on_delete``, across broken connections and expired versions. Steps between two states may be
missed; the last state never is.
"""
