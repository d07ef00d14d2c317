"""Tests of berth.server.extender."""
