"""Tests of berth.server.access."""
