"""Tests of berth.framework.preemption."""
