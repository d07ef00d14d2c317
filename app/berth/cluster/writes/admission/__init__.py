"""Admission: checks of a write in view of other objects and of who asks.

One module per step, named like the plugin of a real server; :mod:`.steps` has them in order.
"""
