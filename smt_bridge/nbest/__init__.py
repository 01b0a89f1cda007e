"""N-best lists: entries, their formats, several lists as one."""
