"""Tests of berth.service.server.extender."""
