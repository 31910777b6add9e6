"""How good outputs are, by the field's measures."""
