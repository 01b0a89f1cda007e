"""The methods of the service: each plans its work, submits it to an engine, and makes the reply."""
