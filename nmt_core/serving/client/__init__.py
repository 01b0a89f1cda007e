"""Clients of the service: synchronous and asynchronous; free of torch."""
