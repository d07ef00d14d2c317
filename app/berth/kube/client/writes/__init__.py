"""What the scheduler writes to the API server: binding, status, claims, volumes; in write lanes.

What must not live here: when to write (``berth.scheduler.api_writer``).
"""
