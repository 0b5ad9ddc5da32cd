"""The `pointsman` command: a client of the public contract, and the starter of a whole stack on one machine.

Owns words on a terminal: verbs, tables, progress, exit codes, and the demonstration. It speaks HTTP to a server like
any other client; only `up` and `demo` start one.
Refuses to decide anything about requests, and to reach into a context other than by building it for `up`.
"""
