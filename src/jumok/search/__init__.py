"""From a model's next-token probabilities to whole outputs.

    step.py           what a search needs from a model: a step function and a cache it can reorder
    decoding.py       the loop all searches share, and the proof that finishing early is safe
    beam.py           beam search; with a beam of 1, greedy search
    sampling.py       random outputs: temperature, top-k, top-p
    constraints.py    bans, bias, no repeated n-grams, forced prefixes, lengths
    ranking.py        the best of many candidates, fast and in a fixed order
    hypothesis.py     what comes out
    loops.py          outputs that repeat themselves, and the second attempt

Import from its files; importing the package itself, hypothesis.py or loops.py does not import torch.
"""
