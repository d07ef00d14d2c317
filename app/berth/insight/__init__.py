"""Questions to a scheduler, answered by the scheduler itself. See README.md."""
