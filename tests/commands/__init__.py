"""The command line: exit statuses and messages. Commands that serve are tested in tests/up."""
