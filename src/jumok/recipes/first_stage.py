"""What the recipes of first stages share: they learn from a corpus that the second stage has prepared."""

from pathlib import Path
from typing import Any

from jumok.errors import ChangedDataError
from jumok.recipes.recipe import Recipe
from jumok.training.settings import Settings


class FirstStageRecipe(Recipe):
    """A training that comes before another one. `corpus` is set when it is made."""

    def prepare(self, store: Path, settings: Settings, **options: Any) -> dict[str, Any]:
        """The facts about the corpus, which is prepared already."""
        changed = options.get("expected") not in (None, self.corpus.facts["fingerprint"])
        if changed and options.get("if_changed") is None:
            raise ChangedDataError([*self.corpus.facts["files"], *self.corpus.facts["valid_files"]])
        return self._facts()

    def reopen(self, store: Path, fingerprint: str) -> dict[str, Any]:
        """The same: every process has opened the corpus."""
        return self._facts()

    def _facts(self) -> dict[str, Any]:
        """Without what the second stage has said of the files already."""
        return {**self.corpus.facts, "findings": [], "layouts": []}
