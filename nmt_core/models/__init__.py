"""The models, their one interface, and the folder they are kept in."""
