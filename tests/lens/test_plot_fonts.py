"""Fonts for plots that matplotlib's own list does not have."""

from pathlib import Path

import pytest
from matplotlib import font_manager, get_data_path

from jumok.lens.plots import fonts


def test_a_font_installed_after_matplotlib_made_its_list_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {Path(entry.fname).name: entry for entry in font_manager.fontManager.ttflist}
    new = str(Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf"))
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [files["cmr10.ttf"]])
    monkeypatch.setattr(fonts, "DEFAULT_FONT", "cmr10")  # which has no Cyrillic letters
    installed: list[str] = []
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: installed)
    fonts._add_new_fonts.cache_clear()
    assert fonts.fonts_for("я") == ([], {"я"})
    installed.append(new)
    fonts._add_new_fonts.cache_clear()
    assert fonts.fonts_for("я") == (["DejaVu Sans"], set())
    fonts._add_new_fonts.cache_clear()
