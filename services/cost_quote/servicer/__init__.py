"""Inbound: decode, call the use-case, encode; one file a gRPC service."""
