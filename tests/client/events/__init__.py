"""Tests of berth.client.events."""
