"""What happens around every call, on every transport, in this order: faults outermost, then deadline, identity and
telemetry (incoming side), and their mirror on the outgoing side (`libs.rpc.outgoing`).

An interceptor is told when a call has opened (and may refuse it with a Fault) and when it has closed. Nothing here
knows a transport: the chain wraps handlers once, when they are registered.
"""
