"""The explorer in a real browser: every view, in both languages and themes, by keyboard, with true numbers, offline."""

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
import pytest
from small_models import FROZEN

from jumok import lens
from jumok.engines.loading import load
from jumok.lens.explorer import Explorer
from jumok.lens.saved import save_page, saved_start
from jumok.lens.session import Entry, Session
from jumok.lens.traces import Trace
from jumok.model.positions import sinusoids

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="No Chromium is installed: the explorer's page is not tested.")
TEXT = "The red horse likes the horse."
VIEWS = ("home", "journey", "atlas", "knockout", "beams", "positions", "softhard", "training", "compare")


class Visitor:
    """A page, and everything that it asked of other computers."""

    def __init__(self, page: Any, url: str) -> None:
        self.page, self.url = page, url
        self.outside: list[str] = []
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        page.route("**/*", self._route)

    def _route(self, route: Any) -> None:
        if re.match(r"(http://127\.0\.0\.1:|file://|data:|blob:)", route.request.url):
            route.continue_()
        else:
            self.outside.append(route.request.url)
            route.abort()

    def open(self, url: str | None = None, **place: object) -> Any:
        """Go to a place of the page, and wait until it is shown."""
        self.page.goto("about:blank")
        self.page.goto(f"{url or self.url}#{urlencode({'language': 'en', 'theme': 'light', **place})}")
        self.page.wait_for_selector(f'body[data-shown^="{place["view"]} "]')
        return self.page


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    run = tmp_path_factory.mktemp("run")
    lines = [
        f'{{"event": "train", "step": {step}, "epoch": 1, "loss": {5 / step}, "lr": 0.001, "tokens": {step * 900}, '
        f'"seconds": {step}}}'
        for step in range(1, 20)
    ]
    lines.append(
        '{"event": "valid", "step": 10, "loss": 0.5, "bleu": 31.5, "samples": [{"source": "a", "output": "b"}]}'
    )
    (run / "log.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Session([Entry("one", lambda: load(FROZEN, "torch")), Entry("two", lambda: load(FROZEN, "torch"))], run)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def url(session: Session) -> Iterator[str]:
    with served(session, TEXT) as address:
        yield address


@contextmanager
def served(session: Session, text: str) -> Iterator[str]:
    explorer = Explorer(session, 0, {"text": text, "samples": [text], "path": str(FROZEN)})
    threading.Thread(target=explorer.serve_forever, daemon=True).start()
    try:
        yield explorer.url
    finally:
        explorer.shutdown()
        explorer.server_close()


@pytest.fixture(scope="module")
def visitor(browser: Any, url: str) -> Visitor:
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    return Visitor(context.new_page(), url)


@pytest.fixture(autouse=True)
def _nothing_went_wrong(visitor: Visitor) -> Iterator[None]:
    yield
    assert not visitor.outside, "the page asked another computer"
    errors = list(visitor.errors)
    visitor.errors.clear()
    assert not errors


@pytest.fixture(scope="module")
def trace(session: Session) -> Trace:
    return lens.trace(session.model(0), TEXT)


def as_number(text: str) -> float:
    return float(text.replace("−", "-").replace("∞", "inf"))


def shows(text: str, value: float) -> bool:
    """Whether a text is a number, rounded to the digits that it shows."""
    shown = as_number(text)
    digits = len(text.split("e")[0].partition(".")[2])
    power = int(text.replace("−", "-").split("e")[1]) if "e" in text else 0
    return math.isclose(shown, value, rel_tol=0, abs_tol=0.5001 * 10.0 ** (power - digits))


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_opens_in_both_languages_and_themes(visitor: Visitor, view: str) -> None:
    titles = set()
    for language, theme in (("en", "light"), ("ko", "dark")):
        page = visitor.open(view=view, language=language, theme=theme)
        assert page.locator("html").get_attribute("lang") == language
        assert page.locator("html").get_attribute("data-theme") == theme
        assert len(page.locator("main").inner_text()) > 40
        assert not re.search(r"\b(undefined|NaN)\b|\[object|\{\w+\}", page.locator("#app").inner_text())
        titles.add(page.title())
    assert len(titles) == 2


@pytest.mark.parametrize("stage", ["scores", "masked", "weights", "mixed"])
def test_cells_of_the_atlas_are_read_by_keyboard_and_are_the_model_s(
    visitor: Visitor, trace: Trace, stage: str
) -> None:
    page = visitor.open(view="atlas", kind="decoder.self", layer=0, head=1, stage=stage)
    page.locator(".atlas-big canvas").focus()
    values = trace[f"decoder.0.self.{stage}"].values[1]
    for row in range(3):
        for column in range(4):
            page.keyboard.press("Home" if column == 0 else "ArrowRight")
            said = page.locator(".atlas-big .readout").inner_text()
            if stage in ("masked", "weights") and column > row:
                assert "masked" in said
            else:
                assert shows(said.split()[-1], float(values[row, column])), said
        page.keyboard.press("ArrowDown")


def test_predictions_of_the_journey_are_the_model_s(visitor: Visitor, trace: Trace) -> None:
    for step in range(2):
        page = visitor.open(view="journey", name="logits", step=step)
        cells = page.locator("[data-probability]")
        assert cells.count() == 10
        for index in range(3):
            token = int(cells.nth(index).get_attribute("data-probability"))
            assert shows(cells.nth(index).inner_text(), float(trace["probabilities"].values[step, token]))
            logit = page.locator(f'[data-logit="{token}"]').inner_text()
            assert shows(logit, float(trace["logits"].values[step, token]))


def test_statistics_and_formula_of_a_box_are_the_model_s(visitor: Visitor, trace: Trace) -> None:
    page = visitor.open(view="journey", name="encoder.0.self.output")
    values = trace["encoder.0.self.output"].values
    expected = {"min": values.min(), "mean": values.mean(), "max": values.max(), "norm": np.linalg.norm(values)}
    for key, value in expected.items():
        assert shows(page.locator(f'[data-statistic="{key}"]').inner_text(), float(value)), key
    page = visitor.open(view="journey", name="encoder.0.self.scores", head=0)
    page.locator(".journey-detail canvas").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('.numbers').textContent.includes('=')")
    said = page.locator(".numbers").inner_text()
    assert shows(said.split("= ")[-1], float(trace["encoder.0.self.scores"].values[0, 0, 0])), said
    assert "src/jumok/model/attention.py:" in page.locator(".journey-head").inner_text()


def test_the_beam_tree_shows_the_search(visitor: Visitor, trace: Trace) -> None:
    page = visitor.open(view="beams")
    assert trace.search is not None
    assert page.locator(".node").count() == len(trace.search.nodes)
    assert page.locator(".node.best").count() == 1
    best = trace.search.nodes[trace.search.best]
    formula = page.locator(".beam-detail .formula").inner_text()
    assert shows(formula.split("= ")[-1], best.score)
    page.locator('.node[tabindex="0"]').focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("() => location.hash.includes('node=')")
    page.wait_for_selector(
        f".node[aria-selected='true'] >> text={trace.search.nodes[best.parent].text.lstrip('▁')[:6]}"
    )


def test_a_forced_token_goes_on_from_there(visitor: Visitor, trace: Trace) -> None:
    page = visitor.open(view="beams", node=0)
    assert trace.search is not None
    token, text, _ = trace.search.nodes[0].top[2]
    page.locator(".beam-detail .bars button").nth(2).click()
    page.wait_for_function(f"() => location.hash.includes('force={token}')")
    page.wait_for_selector(".node >> text=" + text.lstrip("▁")[:6])


def test_switching_a_head_off_shows_what_the_model_then_says(visitor: Visitor, session: Session, trace: Trace) -> None:
    page = visitor.open(view="knockout")
    page.get_by_role("switch", name="decoder.0.cross head 0").click()
    page.wait_for_selector("[data-delta]")
    model = session.model(0)
    with lens.changed(model, heads={("decoder.0.cross", 0): "zero"}):
        after = lens.trace(model, TEXT, target_ids=trace.facts["chosen"][:-1])
    for step, token in enumerate(trace.facts["chosen"]):
        delta = math.log(after["probabilities"].values[step, token]) - math.log(
            trace["probabilities"].values[step, token]
        )
        assert abs(as_number(page.locator(f'[data-delta="{step}"]').inner_text()) - delta) < 0.0011


def test_heads_are_ranked_with_progress(visitor: Visitor) -> None:
    page = visitor.open(view="knockout")
    page.get_by_role("button", name="Rank all heads").click()
    page.wait_for_function("() => document.querySelectorAll('.ranking li').length === 6")
    shown = [as_number(text) for text in page.locator(".ranking li > span").all_inner_texts()]
    assert shown == sorted(shown)


def test_positions_are_the_formula_and_their_change_is_the_model_s(visitor: Visitor, session: Session) -> None:
    page = visitor.open(view="positions", d_model=16, length=20, change="removed")
    page.locator("figure canvas").first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    said = page.locator("figure .readout").first.inner_text()
    row, column = map(int, re.findall(r"PE\((\d+), (\d+)\)", said)[0])
    assert (row, column) != (0, 0)
    assert shows(said.split("= ")[1], float(sinusoids(20, 16)[row, column]))
    with lens.changed(session.model(0), positions="removed"):
        expected = lens.trace(session.model(0), TEXT).output
    assert page.locator("[data-output]").inner_text() == expected


def test_beta_is_previewed_as_the_model_computes_it(visitor: Visitor, session: Session) -> None:
    page = visitor.open(view="softhard", name="decoder.0.cross.scores", head=0, query=2, beta=120)
    beta = as_number(re.findall(r"β = ([\d.e−]+)", page.locator("main .readout").first.inner_text())[0])
    exact = 10 ** (-3 + 6 * 120 / 200) / math.sqrt(8)
    assert beta == pytest.approx(exact, abs=1e-4)
    with lens.changed(session.model(0), beta=exact, attention="decoder.0.cross"):
        weights = lens.trace(session.model(0), TEXT, target_ids=lens.trace(session.model(0), TEXT).facts["chosen"][:-1])
    for key, value in enumerate(weights["decoder.0.cross.weights"].values[0, 2]):
        text = page.locator(f'[data-weight="{key}"]').inner_text()
        assert math.isclose(as_number(text), float(value), rel_tol=0.01, abs_tol=6e-4), (key, text, value)


def test_a_typed_sentence_is_translated_and_kept_in_the_address(visitor: Visitor, session: Session) -> None:
    page = visitor.open(view="atlas")
    other = "The small dog sees the cat."
    page.locator("#sentence").fill(other)
    expected = session.model(0).translate(other)
    page.wait_for_function("(text) => document.querySelector('.answer').textContent === text", arg=expected)
    assert "text=The+small+dog" in page.url


def test_a_saved_page_opens_as_a_file(visitor: Visitor, session: Session, tmp_path: Path, trace: Trace) -> None:
    save_page(saved_start(session, {"text": TEXT, "samples": [TEXT], "path": "run"}), tmp_path / "page.html")
    for view in VIEWS:
        page = visitor.open((tmp_path / "page.html").as_uri(), view=view)
        assert len(page.locator("main").inner_text()) > 30
    assert page.locator(".answer").inner_text() == trace.output


def test_no_serious_violation_of_accessibility(visitor: Visitor) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed.").Axe()
    for view in VIEWS:
        for theme in ("light", "dark") if view in ("atlas", "beams") else ("light",):
            page = visitor.open(view=view, theme=theme)
            found = axe.run(page).response["violations"]
            serious = [
                (view, theme, one["id"], one["nodes"][0]["html"][:120])
                for one in found
                if one["impact"] in ("serious", "critical")
            ]
            assert not serious


def test_figures_are_saved(visitor: Visitor) -> None:
    page = visitor.open(view="atlas", kind="cross")
    for name, start in (("PNG", b"\x89PNG"), ("SVG", b"<svg"), ("CSV", '\ufeff""'.encode())):
        with page.expect_download() as download:
            page.locator(".atlas-big").get_by_role("button", name=name).click()
        assert Path(download.value.path()).read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("place", "figure", "name", "head"),
    [
        ({"view": "atlas", "kind": "cross", "layer": 0, "head": 1}, ".atlas-big", "decoder.0.cross.weights", 1),
        ({"view": "journey", "name": "encoder.0.feed_forward.hidden"}, "main", "encoder.0.feed_forward.hidden", None),
    ],
)
def test_the_copied_python_gets_the_same_array(
    visitor: Visitor, trace: Trace, place: dict[str, Any], figure: str, name: str, head: int | None
) -> None:
    page = visitor.open(**place)
    page.locator(figure).get_by_role("button", name="Copy Python").first.click()
    page.wait_for_selector("text=Copied")
    found: dict[str, Any] = {}
    exec(page.evaluate("() => navigator.clipboard.readText()"), found)
    expected = trace[name].values
    np.testing.assert_array_equal(found["values"], expected if head is None else expected[head])


def test_pictures_made_of_svg_are_saved_too(visitor: Visitor) -> None:
    page = visitor.open(view="beams")
    for name, start in (("PNG", b"\x89PNG"), ("SVG", b"<svg"), ("CSV", '\ufeff"node"'.encode())):
        with page.expect_download() as download:
            page.locator("figure").first.get_by_role("button", name=name).click()
        saved = Path(download.value.path()).read_bytes()
        assert saved.startswith(start)
        assert b"var(--" not in saved


def test_back_and_forward_go_through_the_places(visitor: Visitor) -> None:
    page = visitor.open(view="home")
    page.get_by_role("link", name="Head knock-out").click()
    page.wait_for_selector('body[data-shown^="knockout "]')
    page.go_back()
    page.wait_for_selector('body[data-shown^="home "]')
    page.go_forward()
    page.wait_for_selector('body[data-shown^="knockout "]')


def test_a_syllable_being_composed_is_not_sent_to_the_model(visitor: Visitor) -> None:
    page = visitor.open(view="home")
    page.locator("#sentence").fill("")
    page.wait_for_function("() => document.querySelector('.answer').textContent === ''")
    page.locator("#sentence").focus()
    keyboard = page.context.new_cdp_session(page)
    for syllable in ("ㅁ", "마", "말"):
        keyboard.send("Input.imeSetComposition", {"text": syllable, "selectionStart": 1, "selectionEnd": 1})
    page.wait_for_timeout(300)
    assert page.locator("#sentence").input_value() == "말"
    assert "text=%EB" not in page.url
    keyboard.send("Input.insertText", {"text": "말"})
    page.wait_for_function("() => location.hash.includes('text=%EB%A7%90')")
    assert page.locator("#sentence").input_value() == "말"


def test_the_decision_of_a_classifier_is_explained_with_its_numbers(visitor: Visitor, classifier: Any) -> None:
    text = "cat dog bird ."
    with served(Session([Entry("classifier", lambda: classifier)]), text) as address:
        page = visitor.open(address, view="decision")
        page.wait_for_selector("[data-sum='difference']")
        found = lens.attribution(classifier, text)
        for index, value in enumerate(found.totals):
            assert shows(page.locator(f'[data-attribution="{index}"]').inner_text(), value)
        for key in ("baseline", "error", "difference"):
            assert shows(page.locator(f'[data-sum="{key}"]').inner_text(), getattr(found, key))
        shares = sorted(classifier.classify(text).probabilities.values(), reverse=True)
        assert [as_number(one) for one in page.locator("figure").first.locator("[data-bar]").all_text_contents()] == (
            pytest.approx(shares, abs=6e-4)
        )
        views = page.locator("nav a").evaluate_all("(links) => links.map((link) => link.dataset.view)")
        assert "decision" in views
        assert not {"beams", "surprise", "training"} & set(views)


def test_the_surprise_of_a_language_model_is_the_model_s(visitor: Visitor, language_model: Any) -> None:
    text = "cat dog bird ."
    with served(Session([Entry("lm", lambda: language_model)]), text) as address:
        page = visitor.open(address, view="surprise")
        traced = lens.trace(language_model, text)
        bits = traced["surprise"].values
        for index, value in enumerate(bits):
            assert shows(page.locator(f'[data-bits="{index}"]').inner_text(), float(value))
        assert shows(page.locator('[data-surprise="total"]').inner_text(), float(bits.sum(dtype=float)))
        shares = traced["decoder.1.layer_probabilities"].values
        assert shows(page.locator('[data-layer="1/2"]').inner_text(), float(shares[2, 0]))


def test_a_trace_in_a_notebook_can_be_clicked(visitor: Visitor, trace: Trace) -> None:
    page = visitor.page
    page.goto("about:blank")
    page.set_content(trace._repr_html_())
    frame = page.frame_locator("iframe")
    frame.get_by_role("link", name="Attention atlas").click()
    frame.locator(".atlas-big canvas").wait_for()
    assert frame.locator(".answer").inner_text() == trace.output
