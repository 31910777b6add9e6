"""The Transformer, one idea a file. Figure 1 of the paper, box by box, and where each box is:

    Input / Output Embedding      embeddings.py     scaled by √d_model; the same matrix is the final Linear
    Positional Encoding           positions.py      sinusoids of any length, or learned; and rotations, which are later
    Multi-Head Attention          attention.py      self, masked and encoder–decoder: one class
      Mask (opt.)                 masks.py          True = may be attended to
    Add & Norm                    layers.py         AddNorm
    Feed Forward                  layers.py         FeedForward
    the grey boxes                layers.py         EncoderLayer, DecoderLayer
    N×                            stacks.py         Encoder, Decoder
    Linear                        embeddings.py     TokenEmbedding.logits
    Softmax                       not here: the loss (training/objective.py) and search/ take it of the logits
    Outputs (shifted right)       not here: data/batch.py
    the whole figure              translator.py     and its halves: classifier.py (left), language_model.py (right)

docs/attention.md walks through the paper section by section: formula, function, picture, something to try.

Beside the figure: encoder_decoder.py (what every translator's network has), recurrent.py (what came before the
Transformer, with and without attention), config/ (sizes and presets, a file a task), dropout.py (dropout that does not
wait for random numbers), cache.py (keys and values kept between decoding steps), ngrams.py (n-gram scores beside a
classifier's encoder) and summary.py (how many parameters a model has).

This package knows nothing of words, losses, optimizers or files. Import from its files; importing the
package itself, or config/, does not import torch.
"""
