"""Inbound: decode, call the use-case, encode; one module a service."""
