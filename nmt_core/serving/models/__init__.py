"""The models of a server: how they are opened, what they can do, and the device they are on."""
