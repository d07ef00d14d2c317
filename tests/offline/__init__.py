"""Tests of app.offline."""
