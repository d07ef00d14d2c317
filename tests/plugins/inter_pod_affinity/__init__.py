"""The plugin InterPodAffinity, and its parts."""
