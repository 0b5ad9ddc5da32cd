"""Generated from protos/pointsman/common/v1 by `make gen`. Never edited: change the proto."""
