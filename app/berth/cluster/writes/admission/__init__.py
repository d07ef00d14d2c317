"""What a write must pass in view of others, and in view of who asks: admission.

One module per step, named like the plugin of a real server; :mod:`.steps` has them in order.
"""
