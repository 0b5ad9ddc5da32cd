"""Outbound: the ports over generated stubs, and the only place that sees gRPC errors."""
