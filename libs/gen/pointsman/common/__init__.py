"""Generated from protos/pointsman/common by `make gen`. Never edited: change the proto."""
