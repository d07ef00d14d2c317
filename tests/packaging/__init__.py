"""What berth is shipped in: image, compose file, dashboard, alerts."""
