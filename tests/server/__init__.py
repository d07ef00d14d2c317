"""Tests of berth.server."""
