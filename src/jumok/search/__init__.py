"""Search: from a model's next-token probabilities to complete outputs.

    step.py           what a search needs from a model: step and prefill functions, and a cache it can reorder
    decoding.py       the loop all searches share, and the proof that finishing early is safe
    beam.py           beam search; with a beam of 1, greedy search
    sampling.py       random outputs: temperature, top-k, top-p
    constraints.py    bias, no repeated n-grams, forced prefixes, length limits
    ranking.py        the best of many candidates, in a deterministic order
    hypothesis.py     the result type
    loops.py          detecting outputs that repeat themselves, and searching again

Import from its files; importing the package itself, hypothesis.py or loops.py does not import torch.
"""
