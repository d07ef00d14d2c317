"""Dynamic resources: pools, selectors, claims, and the search for devices."""
