"""Generated from protos/pointsman/routing by `make gen`. Never edited: change the proto."""
