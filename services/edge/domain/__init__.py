"""The edge as pure values: the public shapes, what a request may say, keys, ranges, URLs."""
