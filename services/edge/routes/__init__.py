"""HTTP inbound: one file for each resource, and what all of them share.

`shell` is the outermost layer, `gate` stands before every operation, `bodies` and `answers` read and write, `openapi`
describes exactly the operations that are served, `listener` opens the port.
"""
