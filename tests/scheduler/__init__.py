"""Tests of app.scheduler."""
