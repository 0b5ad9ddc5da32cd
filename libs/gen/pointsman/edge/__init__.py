"""Generated from protos/pointsman/edge by `make gen`. Never edited: change the proto."""
