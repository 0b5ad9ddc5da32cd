"""Generated from protos/pointsman/capacity/v1 by `make gen`. Never edited: change the proto."""
