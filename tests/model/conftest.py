"""Small models to take apart."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from jumok.model.attention import Attend
from jumok.model.classifier import Classifier
from jumok.model.config import ModelConfig, config_from_dict
from jumok.model.language_model import LanguageModel
from jumok.model.translator import Translator

VOCABULARY = 23
TASKS: dict[str, Callable[[ModelConfig], nn.Module]] = {
    "translator": Translator,
    "language_model": LanguageModel,
    "classifier": Classifier,
}


@pytest.fixture(autouse=True)
def _same_numbers_every_time() -> None:
    torch.manual_seed(20170612)


@pytest.fixture(scope="session")
def build() -> Callable[..., Any]:
    """`build("translator", norm="pre")`: a two-layer model in evaluation mode with any setting changed."""

    def build(task: str, **changes: Any) -> nn.Module:
        settings: dict[str, Any] = {
            "task": task,
            "vocabulary": VOCABULARY,
            "encoder_layers": 0 if task == "language_model" else 2,
            "decoder_layers": 0 if task == "classifier" else 2,
            "classes": 3 if task == "classifier" else 0,
            "d_model": 12,
            "heads": 3,
            "d_ff": 20,
        }
        return TASKS[task](config_from_dict(settings | changes)).eval()

    return build


@pytest.fixture(scope="session")
def some_ids() -> Callable[..., Tensor]:
    """`some_ids(2, 5)`: random ids of real tokens, no padding among them."""

    def some_ids(*shape: int) -> Tensor:
        return torch.randint(1, VOCABULARY, shape)

    return some_ids


@pytest.fixture(params=["plain", "fused"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways through `Attend`, whichever it would choose by itself."""
    monkeypatch.setattr(Attend, "_in_plain_steps", lambda *_: request.param == "plain")
    return str(request.param)
