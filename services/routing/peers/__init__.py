"""Outbound: the ports of health, capacity, prices and providers over generated stubs.

Owns time limits and the step from gRPC errors to Faults; nobody else in this house sees gRPC. Refuses to decide and
to try anything twice.
"""
