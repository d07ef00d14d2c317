"""Tests of berth.server.scheduler.debug."""
