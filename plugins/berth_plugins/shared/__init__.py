"""Parts of several in-tree plugins. Plugins import it; it imports no plugin."""
