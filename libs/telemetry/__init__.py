"""What this process tells about itself: names, metrics, logs, and what must never be in them.

Owns the one list of metric and span names (`names`), the Prometheus registry (`metrics`), JSON logging (`logs`), the
facts that tie log lines and traces together (`correlation`) and redaction (`redaction`, ERR-4). Refuses to know any
context or message. Telemetry is never allowed to fail the work it describes.
"""
