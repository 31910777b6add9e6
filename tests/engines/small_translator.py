"""A language that is learned in a second or two, and a model that learns it."""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import jaxtyping
import torch
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from jumok.model.config.translator import TranslatorConfig
from jumok.model.translator import Translator
from jumok.tokenizer import BOS, EOS, PAD, Tokenizer
from jumok.training.optimizer import Adam

STEPS = 100
LEXICON = {
    "cat": "고양이",
    "dog": "개",
    "bird": "새",
    "fish": "물고기",
    "tree": "나무",
    "house": "집",
    "river": "강",
    "sky": "하늘",
}


def make_pair(rng: Random) -> tuple[str, str]:
    """Some of the words, in the order of the lexicon, and their translations: a language that is learned at once."""
    chosen = sorted(rng.sample(list(LEXICON), rng.randint(1, len(LEXICON))), key=list(LEXICON).index)
    return f"{' '.join(chosen)} .", f"{' '.join(LEXICON[word] for word in chosen)} ."


def small_config(vocabulary: int, **changes: object) -> TranslatorConfig:
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 32, "heads": 4, "d_ff": 64, "dropout": 0.0}
    return TranslatorConfig.from_dict({"vocabulary": vocabulary, "norm": "pre", **sizes, **changes})


def translation_loss(model: Translator, tokenizer: Tokenizer, batch: list[tuple[str, str]]) -> torch.Tensor:
    sources, targets = (tokenizer.encode(side) for side in zip(*batch, strict=True))
    source = pad_sequence([torch.tensor([*ids, EOS]) for ids in sources], batch_first=True)
    target = pad_sequence([torch.tensor([BOS, *ids, EOS]) for ids in targets], batch_first=True)
    logits = model(source, target[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)


@contextmanager
def unchecked() -> Iterator[None]:
    """No shapes are checked, as in the fixture `without_shape_checks`: that one is for single tests."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


def train_small_translator(tokenizer: Tokenizer) -> Translator:
    """A model that translates the language of `make_pair`, in evaluation mode."""
    rng = Random(3)
    with unchecked(), torch.random.fork_rng():
        torch.manual_seed(1)
        model = Translator(small_config(tokenizer.size))
        optimizer = Adam(model.parameters(), (0.9, 0.98), 1e-8)
        for step in range(STEPS):
            optimizer.param_groups[0]["lr"] = 2e-2 * min(1, (step + 1) / 40) * (1 - step / STEPS)
            loss = translation_loss(model, tokenizer, [make_pair(rng) for _ in range(32)])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()
