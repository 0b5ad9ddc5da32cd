"""The limits of one message and one connection, equal on every transport."""

# Of what is asked: a conversation with pictures in it is many megabytes, and the edge takes bodies of as much. gRPC's
# own default is 4 MiB for receiving; set on both sides, so that sending fails early too. Other media travel as digests.
MESSAGE_LIMIT_BYTES = 64 * 1024 * 1024

# Of what is answered, which may have been paid for. Vectors travel as text: 2,048 of 3,072 numbers are some 140 MB.
ANSWER_LIMIT_BYTES = 256 * 1024 * 1024

# A fault with many field errors is large, and it travels as metadata. gRPC's own limits are 8 KiB (from there calls
# fail at random) and 16 KiB (from there all fail).
METADATA_LIMIT_BYTES = 64 * 1024
METADATA_OPTIONS = (
    ("grpc.max_metadata_size", METADATA_LIMIT_BYTES),
    ("grpc.absolute_max_metadata_size", 2 * METADATA_LIMIT_BYTES),
)

# How many messages of a stream may wait in an in-process channel before the writer waits for the reader.
STREAM_BUFFER_MESSAGES = 16
