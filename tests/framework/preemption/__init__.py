"""Tests of app.framework.preemption."""
