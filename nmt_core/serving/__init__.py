"""The gRPC service and its client."""
