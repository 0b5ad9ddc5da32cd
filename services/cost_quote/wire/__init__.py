"""Proto <-> domain, and nothing else; one file a gRPC service."""
