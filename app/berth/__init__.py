"""The berth service. The composition root is :mod:`berth.assembly`; what it connects lives in the
packages beside it, one direction of imports (see ``pyproject.toml``, ``tool.importlinter``)."""
