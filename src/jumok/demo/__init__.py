"""The built-in corpora: an English–Korean grammar of our own, and reviews with labels."""
