"""The progress of a training for people: a live panel in a terminal, a panel in a notebook, plain lines elsewhere."""
