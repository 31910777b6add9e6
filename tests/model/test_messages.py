"""What each error of a model says, word for word: what is wrong, and what to do."""

from typing import Any

import pytest
import torch
from torch import Tensor

from jumok.errors import ConfigError, JumokError, ShapeError
from jumok.model.attention import Attend, MultiHeadAttention, attention_weights
from jumok.model.classifier import pool
from jumok.model.config import config_from_dict, preset, preset_table
from jumok.model.config.translator import TranslatorConfig
from jumok.model.dropout import Dropout
from jumok.model.embeddings import TokenEmbedding
from jumok.model.language_model import LanguageModel
from jumok.model.layers import AddNorm, FeedForward
from jumok.model.masks import causal_mask
from jumok.model.positions import LearnedPositions, SinusoidalPositions, make_positions, sinusoids
from jumok.model.stacks import Decoder, Encoder
from jumok.model.translator import Translator

pytestmark = pytest.mark.usefixtures("without_shape_checks")

SMALL = {"vocabulary": 9, "d_model": 4, "heads": 2, "d_ff": 4, "decoder_layers": 1}
SIZES = {"vocabulary": 100, "d_model": 12, "heads": 3}


def ones(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.ones(shape, dtype=dtype)


def language_model(**changes: Any) -> LanguageModel:
    return LanguageModel(config_from_dict(SMALL | {"task": "language_model"} | changes))


def continued(text: list[list[int]], rows: int) -> Any:
    """A text that continues a cache of so many rows."""
    model = language_model()
    _, cache = model.decode(torch.ones(rows, 2, dtype=torch.long))
    return model.decode(torch.tensor(text), cache)


def with_another_cache() -> Any:
    _, cache = language_model().decode(torch.tensor([[5]]))
    return language_model(decoder_layers=2).decode(torch.tensor([[5]]), cache)


SHAPES: list[tuple[Any, str]] = [
    (
        lambda: MultiHeadAttention(4, 2)(ones(2, 3, 4), ones(2, 3, 4)),
        "Attention built with d_memory=None needs that for memory: None for self-attention, a tensor for one width, "
        "a pair (keys, values) for two.",
    ),
    (
        lambda: MultiHeadAttention(4, 2, d_memory=4)(ones(3, 2, 4), ones(2, 5, 4)),
        "3 rows cannot be shared among 2 sentences. Use a multiple of 2.",
    ),
    (lambda: causal_mask(-1, 2), "A mask needs lengths of at least 0, got length=-1 and past=2."),
    (
        lambda: Attend()(ones(3, 3, 4, 2), ones(3, 3, 4, 2), ones(3, 3, 4, 2), ones(2, 4, dtype=torch.bool)),
        "A mask of shape [2, 4] does not fit scores of shape [3, 3, 4, 4]: batch, heads, queries, keys. "
        "Each axis must have that length or 1.",
    ),
    (
        lambda: attention_weights(ones(2, 4), ones(3, 4), ones(2, 3, dtype=torch.uint8)),
        "A mask must be boolean (True = may be attended to), not torch.uint8.",
    ),
    (
        lambda: attention_weights(ones(2, 4), ones(3, 4), ones(1, 2, 3, dtype=torch.bool)),
        "A mask of shape [1, 2, 3] does not fit scores of shape [2, 3]: batch, heads, queries, keys. "
        "Each axis must have that length or 1.",
    ),
    (
        lambda: TokenEmbedding(7, 4)(ones(1, 2, dtype=torch.int16)),
        "Token ids must be of type int64 or int32, not torch.int16.",
    ),
    (
        lambda: TokenEmbedding(7, 4)(torch.tensor([[0, 7, 9]])),
        "Token id 7 is outside the vocabulary of 7: ids go from 0 to 6.",
    ),
    (lambda: sinusoids(-1, 4), "Positions need a length and a start of at least 0, got length=-1 and start=0."),
    (
        lambda: SinusoidalPositions(4)(ones(1, 3, 4), -2),
        "Positions need a length and a start of at least 0, got length=3 and start=-2.",
    ),
    (
        lambda: LearnedPositions(5, 4)(ones(1, 3, 4), -2),
        "Positions need a length and a start of at least 0, got length=3 and start=-2.",
    ),
    (
        lambda: LearnedPositions(5, 4)(ones(1, 4, 4), 2),
        "A text of 6 tokens does not fit learned positions, which end at 5. "
        "Split the text, or train with a larger max_length or positions=sinusoidal.",
    ),
    (
        with_another_cache,
        "A cache of 1 layers and 0 memories does not fit a decoder of 2 and 0. "
        "Make it with this decoder's own `remember`.",
    ),
    (
        lambda: continued([[5], [6]], rows=3),
        "2 rows of tokens cannot continue a cache of 3 rows. Use a row for each, or choose rows with cache.reorder "
        "first.",
    ),
    (
        lambda: language_model()(torch.tensor([[5, 0, 6]])),
        "A target has padding before a real token. Padding may be only at the end of a row.",
    ),
]

CONFIGS: list[tuple[Any, str]] = [
    (
        lambda: attention_weights(ones(2, 4), ones(3, 4), beta=float("inf")),
        "beta=inf is not finite. For the limit of a large one, use hard=True.",
    ),
    (
        lambda: MultiHeadAttention(10, 3),
        "d_model=10 cannot be split into 3 heads. Use a multiple of 3, or set d_k and d_v.",
    ),
    (lambda: MultiHeadAttention(0, 2), "d_model=0 must be a whole number, at least 1."),
    (lambda: MultiHeadAttention(4, 0), "heads=0 must be a whole number, at least 1."),
    (lambda: MultiHeadAttention(4, 2, d_query=0), "d_query=0 must be a whole number, at least 1."),
    (lambda: MultiHeadAttention(4, 2, d_k=0), "d_k=0 must be a whole number, at least 1."),
    (lambda: MultiHeadAttention(4, 2, d_v=0), "d_v=0 must be a whole number, at least 1."),
    (lambda: FeedForward(0, 4), "d_model=0 must be a whole number, at least 1."),
    (lambda: FeedForward(4, 0), "d_ff=0 must be a whole number, at least 1."),
    (lambda: FeedForward(4, 4, "none"), "activation='none' is unknown. Known: gelu, relu."),
    (lambda: AddNorm(4, norm="none", dropout=0.0), "norm='none' is unknown. Known: post, pre."),
    (lambda: Encoder(0, 4, 2, 4, norm="none"), "norm='none' is unknown. Known: post, pre."),
    (lambda: Encoder(-1, 4, 2, 4), "layers=-1 must be a whole number, at least 0."),
    (lambda: Decoder(-1, 4, 2, 4), "layers=-1 must be a whole number, at least 0."),
    (lambda: TokenEmbedding(0, 4), "vocabulary=0 must be a whole number, at least 1."),
    (lambda: TokenEmbedding(4, 0), "d_model=0 must be a whole number, at least 1."),
    (lambda: LearnedPositions(0, 4), "max_length=0 must be a whole number, at least 1."),
    (lambda: LearnedPositions(4, 0), "d_model=0 must be a whole number, at least 1."),
    (lambda: make_positions("rotary", 4, 9), "positions='rotary' is unknown. Known: learned, sinusoidal."),
    (lambda: pool(ones(1, 2, 3), ones(1, 2).bool(), "sum"), "pooling='sum' is unknown. Known: max, mean."),
    (lambda: Dropout(1.5), "dropout=1.5 is not a rate. It must be at least 0 and below 1."),
    (
        lambda: sinusoids(3, 7),
        "Sinusoids come in pairs of sine and cosine, so their width must be even and not 7.",
    ),
    (
        lambda: Translator(config_from_dict(SMALL | {"task": "language_model"})),
        "This model needs a TranslatorConfig, not a LanguageModelConfig.",
    ),
    (lambda: TranslatorConfig(**SIZES, task="classifier"), "task='classifier' does not fit a TranslatorConfig."),
    (
        lambda: TranslatorConfig(**SIZES | {"d_model": 10}),
        "d_model=10 cannot be split into heads=3 equal parts. "
        "Use a d_model that is a multiple of 3, or set d_k and d_v yourself.",
    ),
    (
        lambda: TranslatorConfig(**SIZES | {"d_model": 9}),
        "d_model=9 is odd, but sinusoidal positions come in pairs of sine and cosine. Use 10, or positions=learned.",
    ),
    (
        lambda: TranslatorConfig(**SIZES, dropout=1.0),
        "dropout=1.0 is not a rate. It must be at least 0 and below 1.",
    ),
    (
        lambda: TranslatorConfig(**SIZES, d_ff=(1 << 24) + 1),
        "d_ff is too large; at most 16,777,216 is allowed.",
    ),
    (
        lambda: TranslatorConfig(**SIZES, encoder_layers=257),
        "encoder_layers is too large; at most 256 is allowed.",
    ),
    (
        lambda: TranslatorConfig(**SIZES, attention_bias=1),  # type: ignore[arg-type]
        "attention_bias=1 must be true or false.",
    ),
    (
        lambda: config_from_dict(SIZES | {"d_modle": 4}),
        'Unknown model setting "d_modle". Did you mean "d_model"?',
    ),
    (
        lambda: config_from_dict(SIZES | {"classes": 2}),
        "classes=2 is a setting of another task; a TranslatorConfig has none.",
    ),
    (lambda: config_from_dict({"d_model": 4}), 'The model setting "vocabulary" is missing.'),
    (
        lambda: config_from_dict(SIZES | {"task": "classifier", "ngrams": 6}),
        "ngrams=6 must be a power of 2, such as 8.",
    ),
    (lambda: preset("tinny"), 'Unknown preset "tinny". Did you mean "tiny"?'),
    (
        lambda: preset("imdb-notebook", task="translator"),
        'The preset "imdb-notebook" is for a classifier, not for a translator. Use another preset.',
    ),
]


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [*((make, ShapeError, text) for make, text in SHAPES), *((make, ConfigError, text) for make, text in CONFIGS)],
    ids=[text[:40] for _, text in (*SHAPES, *CONFIGS)],
)
def test_an_error_says_what_is_wrong_and_what_to_do(make: Any, kind: type[JumokError], message: str) -> None:
    with pytest.raises(kind) as error:
        make()
    assert str(error.value) == message


def test_the_largest_sizes_are_allowed() -> None:
    config = TranslatorConfig(**SIZES, d_ff=1 << 24, encoder_layers=256, decoder_layers=256)
    assert (config.d_ff, config.encoder_layers) == (16_777_216, 256)


def test_the_table_of_presets() -> None:
    assert preset_table() == [
        ("preset", "layers", "d_model", "heads", "d_ff", "dropout", "norm"),
        ("tiny", "4 + 4", "128", "4", "256", "0.3", "pre"),
        ("small", "4 + 4", "256", "4", "1024", "0.2", "pre"),
        ("base", "6 + 6", "512", "8", "2048", "0.1", "post"),
        ("big", "6 + 6", "1024", "16", "4096", "0.3", "post"),
        ("imdb-notebook", "1", "32", "2", "128", "0.1", "post"),
        ("rnn", "2 + 2", "192", "–", "–", "0.3", "–"),
        ("rnn-attention", "2 + 2", "192", "–", "–", "0.3", "–"),
    ]
