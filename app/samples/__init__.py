"""Sample manifests that ``berth up --sample`` loads; YAML files only."""
