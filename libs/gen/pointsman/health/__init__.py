"""Generated from protos/pointsman/health by `make gen`. Never edited: change the proto."""
