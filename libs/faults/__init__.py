"""Failure, said once: the fault that every context raises, the registry of its codes, and its form on the wire.

Owns `Fault` and `FieldError` (`fault`), the one list of codes (`registry`), and the translation to and from
`google.rpc.Status` and `common.v1.Failure` (`wire`). Refuses to decide anything: whether to retry or to switch is
routing's business, whether to answer 429 or 503 is a column of the registry.
"""
