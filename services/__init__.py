"""One folder per bounded context. They never import each other: the only door is a generated stub on a channel."""
