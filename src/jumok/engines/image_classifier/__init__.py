"""Running an image classifier."""
