"""Tests of berth.scheduler.cache."""
