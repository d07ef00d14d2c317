"""What goes over the wire to the API server, against recordings of kube-scheduler 1.36.2."""
