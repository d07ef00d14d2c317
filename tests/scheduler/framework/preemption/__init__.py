"""Tests of berth.scheduler.framework.preemption."""
