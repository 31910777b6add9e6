"""A visitor of the explorer's page in a real browser, and what it reads there."""

import csv
import io
import math
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import torch
from small_models import FROZEN

from jumok.engines.loading import load
from jumok.lens.explorer import Explorer
from jumok.lens.replay import record_attention
from jumok.lens.session import Session
from jumok.training.checkpoint import save_checkpoint
from jumok.training.run_directory import RunDirectory

TEXT = "The red horse likes the horse."


class Visitor:
    """A page, and everything that it asked of other computers."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.outside: list[str] = []
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        page.route(re.compile(r"^(?!http://127\.0\.0\.1:|file:|data:|blob:|about:)"), self._refuse)

    def _refuse(self, route: Any) -> None:
        self.outside.append(route.request.url)
        route.abort()

    def open(self, url: str, **place: object) -> Any:
        """Go to a place of a page, and wait until it is shown. On the page that is open, only its hash changes."""
        hash_ = urlencode({"language": "en", "theme": "light", **place})
        if self.page.url.split("#")[0] == url and not self.page.url.endswith(f"#{hash_}"):
            self.page.evaluate("(hash) => { document.body.dataset.shown = ''; location.hash = hash; }", hash_)
        else:
            self.page.goto("about:blank")
            self.page.goto(f"{url}#{hash_}")
        self.page.wait_for_selector(f'body[data-shown^="{place["view"]} "]')
        return self.page


@contextmanager
def served(session: Session, start: dict[str, Any]) -> Iterator[str]:
    explorer = Explorer(session, 0, start)
    threading.Thread(target=explorer.serve_forever, daemon=True).start()
    try:
        yield explorer.url
    finally:
        explorer.shutdown()
        explorer.server_close()


def make_run(path: Path) -> Path:
    """A run directory with a log, a model that has learned something, another checkpoint, and recorded attention."""
    model: Any = load(FROZEN, "torch")
    source, target = model.tokenizer.encode([TEXT, model.translate(TEXT)])
    with RunDirectory.open(path, "translator") as run:
        settings = {"optimizer": {"lr": 0.002}, "schedule": {"name": "linear", "warmup": 8}}
        run.write({"asked": {}, "settings": settings, "fingerprint": "", "keeps_vocabulary": False})
        for step in range(1, 20):
            counts = {"epoch": 1, "tokens": step * 900, "seconds": step * 1.5}
            run.append_log({"event": "train", "step": step, "loss": 5 / step, "lr": 0.001 / step, **counts})
            if step in (5, 10, 15):
                samples = [{"source": TEXT, "output": "b"}]
                run.append_log({"event": "valid", "step": step, "loss": 0.5, "bleu": 30.5 + step, "samples": samples})
                run.save_attention(step, record_attention(model.engine, [(source, target), (target, source)]))
        run.append_log({"event": "done", "step": 19})
    shutil.copytree(FROZEN, path / "model")
    weights = {name: weight.clone() for name, weight in model.engine.model.state_dict().items()}
    for weight in weights.values():
        weight *= 1 + 0.05 * torch.sin(torch.arange(weight.numel(), dtype=weight.dtype)).view(weight.shape)
    save_checkpoint(path / "checkpoints", 10, {"model": weights}, {})
    return path


def as_number(text: str) -> float:
    return float(text.replace("−", "-").replace("∞", "inf"))


def shows(text: str, value: float) -> bool:
    """Whether a text is a number, rounded to the digits that it shows."""
    shown = as_number(text)
    digits = len(text.split("e")[0].partition(".")[2])
    power = int(text.replace("−", "-").split("e")[1]) if "e" in text else 0
    return math.isclose(shown, value, rel_tol=0, abs_tol=0.5001 * 10.0 ** (power - digits))


def numbers_of_table(text: str) -> list[float]:
    """The numbers of a CSV file without its first row and column; NaN where a cell is empty."""
    cells = [cell for row in list(csv.reader(io.StringIO(text)))[1:] for cell in row[1:]]
    found = [math.nan if cell == "" else _number(cell) for cell in cells]
    return [number for number in found if number is not None]


def numbers_of_values(values: Any) -> list[float]:
    """The numbers of arrays or of rows of numbers and texts; NaN where a text is empty."""
    if isinstance(values, np.ndarray):
        return [float(value) for value in values.flat]
    if isinstance(values, str):
        return [math.nan] if values == "" else []
    if isinstance(values, list | tuple):
        return [number for value in values for number in numbers_of_values(value)]
    return [float(values)]


def _number(cell: str) -> float | None:
    try:
        return float(cell.replace("Infinity", "inf"))
    except ValueError:
        return None
