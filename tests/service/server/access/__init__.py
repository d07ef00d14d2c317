"""Tests of berth.service.server.access."""
