"""Generated from protos/pointsman/provider_adapter/v1 by `make gen`. Never edited: change the proto."""
