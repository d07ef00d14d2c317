"""What makes a release: ``make release-check``, and the files that only releases need."""
