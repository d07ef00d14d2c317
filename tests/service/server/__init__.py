"""Tests of berth.service.server."""
