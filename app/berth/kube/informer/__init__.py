"""Local copies of the API server's objects: one reflector per kind, as in client-go.

What lives here: listing and watching forever, the store of decoded objects, and notifying event
handlers. What must not: what a change means (handlers belong to the scheduler and to the
controllers of the embedded cluster), and HTTP, which belongs to :mod:`berth.kube.client` below.

A reflector guarantees its handler a call of ``on_add`` for every object in the store, of
``on_update`` for every change, with the object of the call before, and of ``on_delete`` when the
object is gone, across broken connections and expired versions. It may skip states in between, but
never the last one.
"""
