"""Generated from protos/pointsman/runs/v1 by `make gen`. Never edited: change the proto."""
