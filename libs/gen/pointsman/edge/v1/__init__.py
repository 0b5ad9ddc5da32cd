"""Generated from protos/pointsman/edge/v1 by `make gen`. Never edited: change the proto."""
