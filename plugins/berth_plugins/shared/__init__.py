"""What several in-tree plugins share. Plugins import it; it imports no plugin."""
