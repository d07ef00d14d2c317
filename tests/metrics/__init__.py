"""Tests of app.metrics."""
