"""Tests of berth.scheduler."""
