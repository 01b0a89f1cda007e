"""The models of a server: how they are opened, what they can do, and the devices they are on."""
