"""Running painters: captions in, pictures out."""
