"""Tests of berth.scheduler.profile."""
