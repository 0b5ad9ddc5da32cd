"""Generated from protos/pointsman by `make gen`. Never edited: change the proto."""
