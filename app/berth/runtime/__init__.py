"""The process: time, tasks, files, logs, HTTP serving. See README.md."""
