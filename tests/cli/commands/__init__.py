"""The command line: exit statuses and messages. For commands that serve: tests/embedded."""
