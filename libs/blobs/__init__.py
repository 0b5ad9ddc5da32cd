"""Bytes named by their SHA-256: media travels between contexts as digests, never inside messages.

Owns the port `Blobs` with its contract (`blob`), a local directory (`local`), any S3-compatible bucket (`bucket`) and
the choice between them by one address (`opening`). Refuses to know what the bytes mean, who may read them, and how long
they are kept.
"""
