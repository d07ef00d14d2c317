"""Tests of berth.client.writes."""
