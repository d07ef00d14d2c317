"""Leader election: the rules of spec §10 one by one, and several replicas on one Lease."""
