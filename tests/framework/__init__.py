"""Tests of app.framework."""
