"""Generated from protos/pointsman/runs by `make gen`. Never edited: change the proto."""
