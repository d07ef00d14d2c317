"""Subresources: one module each, all of them in :mod:`.table`.

A :class:`~.part.Part` is a view of the object that is read and written; an
:class:`~.action.Action` takes a body of a kind of its own and does something.
"""
