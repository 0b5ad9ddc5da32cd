"""The other contexts over generated stubs: the only place of the edge that meets gRPC's errors."""
