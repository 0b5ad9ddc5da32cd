"""HTTP inbound: one file for each resource, and what all of them share.

`shell` is the outermost layer, `gate` stands before every operation, `bodies` and `answers` read and write, `presence`
sees a client leave, `event_stream` sends to one that stays, `openapi` describes exactly the operations that are served,
`listener` opens the port.
"""
