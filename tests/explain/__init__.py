"""Tests of app.explain."""
