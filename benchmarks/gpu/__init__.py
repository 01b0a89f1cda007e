"""What a GPU does right and how fast: one command, which writes a report while it runs."""
