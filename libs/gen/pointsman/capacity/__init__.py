"""Generated from protos/pointsman/capacity by `make gen`. Never edited: change the proto."""
