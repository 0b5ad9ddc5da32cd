"""Generated from protos/pointsman/cost_quote by `make gen`. Never edited: change the proto."""
