"""Tests of berth.scheduler.framework."""
