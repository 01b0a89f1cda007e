"""What everything else rests on: errors, messages, words, and the interface between the packages."""
