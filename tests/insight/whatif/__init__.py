"""What-if."""
