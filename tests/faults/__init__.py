"""The scheduler and an API server with a proxy between them that makes things go wrong."""
