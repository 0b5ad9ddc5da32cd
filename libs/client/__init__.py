"""What internal systems import to use Pointsman: async, typed, over HTTP (`http`) and over gRPC (`rpc`).

Owns the patience of a caller (`retrying`: what may be repeated, and when), the faults that it meets (`faults`), the
shapes that it reads (`shapes`) and the reading of event streams (`events`). A create is repeated under one
Idempotency-Key, a stream is resumed behind its last sequence, and what may have been made is never asked for twice.
Refuses to know any context, to decide anything about runs, and to fail on codes, states and kinds of a later release.
"""
