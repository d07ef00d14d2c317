"""Tests of berth.server.debug."""
