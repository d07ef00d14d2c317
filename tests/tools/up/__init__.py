"""``berth up`` over real sockets: manifests in, pods placed, the API tells."""
