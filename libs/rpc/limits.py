"""The limits of one message and one connection, equal on every transport and on both sides."""

# gRPC's own default for receiving; set explicitly so that sending fails early too. Media travels as digests.
MESSAGE_LIMIT_BYTES = 4 * 1024 * 1024

# How many messages of a stream may wait in an in-process channel before the writer waits for the reader.
STREAM_BUFFER_MESSAGES = 16
