"""The berth service. The composition root is :mod:`berth.service`; what it connects lives in the
packages beside it, one direction of imports (see ``pyproject.toml``, ``tool.importlinter``)."""
