"""Tests of app.profile."""
