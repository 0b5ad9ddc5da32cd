"""Generated from protos/pointsman/provider_adapter by `make gen`. Never edited: change the proto."""
