"""Tests of berth.service.server.scheduler."""
