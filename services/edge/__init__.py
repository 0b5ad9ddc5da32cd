"""The edge: where people and foreign systems come in, over HTTP.

Owns the public JSON contract with its problems, API keys and the tenants behind them, uploads, and the record of which
tenant may read which artifact. Turns a request into calls of the contexts that own the facts, and their faults into
`application/problem+json`.
Refuses to decide anything about runs, tasks, supplies or money, to keep their facts, and to know any provider.
"""
