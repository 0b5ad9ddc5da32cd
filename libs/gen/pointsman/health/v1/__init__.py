"""Generated from protos/pointsman/health/v1 by `make gen`. Never edited: change the proto."""
