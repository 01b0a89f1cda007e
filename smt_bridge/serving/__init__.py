"""Moses and a neural model as one more model of the gRPC service."""
