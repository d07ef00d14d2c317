"""Tests of berth.server.scheduler."""
