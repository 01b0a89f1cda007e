"""The thread of a device: queues, fair shares of its time, batches, running searches and slices."""
