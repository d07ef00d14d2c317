"""What berth answers as an extender, without HTTP."""
