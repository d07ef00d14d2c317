"""The in-tree plugins, one by one, over small tables."""
