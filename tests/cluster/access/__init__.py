"""Tests of users, tokens, RBAC and reviews."""
