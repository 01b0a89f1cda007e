"""Files of Moses: configurations, feature functions and weights."""
