"""Generated from protos/pointsman/cost_quote/v1 by `make gen`. Never edited: change the proto."""
