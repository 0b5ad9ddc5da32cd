"""Generated from protos/pointsman/routing/v1 by `make gen`. Never edited: change the proto."""
