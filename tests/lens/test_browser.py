"""The explorer in a real browser: every view, in both languages and themes, by keyboard, with true numbers, offline."""

import base64
import math
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from browser import TEXT, Visitor, as_number, make_run, numbers_of_table, numbers_of_values, served, shows
from small_models import make_classifier, make_image_classifier, make_language_model, make_painter

import jumok
from jumok import lens
from jumok.cli.look import open_session
from jumok.lens.saved import save_page, saved_start
from jumok.lens.session import Entry, Session
from jumok.lens.traces import Trace
from jumok.model.positions import sinusoids
from jumok.pictures import png_bytes
from jumok.tokenizer import Tokenizer

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="No Chromium is installed: the explorer's page is not tested.")
TRANSLATOR = ("home", "journey", "atlas", "knockout", "beams", "positions", "softhard", "training", "compare")
VIEWS = [
    *(("translator", view) for view in TRANSLATOR),
    ("classifier", "decision"),
    ("language_model", "surprise"),
    ("image_classifier", "patches"),
    ("painter", "painting"),
]
OTHER_TEXT = "cat dog bird ."  # for the classifier, the language model and the painter
LONG_TEXT = "cat dog bird . " * 3  # more tokens than the classifier reads in one window
# Counts everything that is painted on a canvas.
COUNT_PAINTING = """
() => {
  window.painted = 0;
  for (const name of ["fillRect", "fillText", "strokeRect", "stroke", "drawImage", "putImageData", "getImageData"]) {
    const paint = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...options) {
      window.painted += 1;
      return paint.apply(this, options);
    };
  }
}
"""
PIXELS = np.random.default_rng(1).integers(0, 256, (10, 12, 1), dtype=np.uint8)


Sessions = dict[str, tuple[Session, dict[str, Any]]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("explorer") / "run")


def open_sessions(run: Path, tokenizer: Tokenizer) -> Sessions:
    """Of each task what the explorer is asked, and what its page begins with."""
    other = {"text": OTHER_TEXT, "samples": [OTHER_TEXT], "path": "run"}
    classifier, language_model = make_classifier(tokenizer, run), make_language_model(tokenizer, run)
    image_classifier, painter = make_image_classifier(run), make_painter(tokenizer, run)
    picture = run / "small.png"
    picture.write_bytes(png_bytes(PIXELS))
    shown = {"text": "small.png", "samples": ["small.png"], "path": "run", "files": {"small.png": str(picture)}}
    return {
        "translator": open_session(run, TEXT),
        "classifier": (Session([Entry("classifier", lambda: classifier)]), other),
        "language_model": (Session([Entry("lm", lambda: language_model)]), other),
        "image_classifier": (Session([Entry("vit", lambda: image_classifier)], None, {"small.png": picture}), shown),
        "painter": (Session([Entry("painter", lambda: painter)]), other),
    }


@pytest.fixture(scope="module")
def sessions(run: Path, tokenizer: Tokenizer) -> Sessions:
    """Of each task the same models as those of the page, which may be at work."""
    return open_sessions(run, tokenizer)


@pytest.fixture(scope="module")
def session(sessions: Sessions) -> Session:
    return sessions["translator"][0]


@pytest.fixture(scope="module")
def urls(run: Path, tokenizer: Tokenizer) -> Iterator[dict[str, str]]:
    """Of each task the address of its page."""
    with ExitStack() as servers:
        opened = open_sessions(run, tokenizer).items()
        yield {task: servers.enter_context(served(*session)) for task, session in opened}


@pytest.fixture(scope="module")
def visitor() -> Iterator[Visitor]:
    with playwright.sync_playwright() as started:
        # Without a graphics card, to imitate one takes longer than to paint without.
        flags = ["--no-sandbox", "--disable-gpu", "--disable-software-rasterizer"]
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=flags)
        context = chromium.new_context(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
        context.set_default_timeout(600_000)  # milliseconds; 30 seconds are too few on a busy machine
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield Visitor(context.new_page())
        chromium.close()


@pytest.fixture
def opened(visitor: Visitor, urls: dict[str, str]) -> Any:
    """Opens a place of the translator's page."""
    return lambda **place: visitor.open(urls["translator"], **place)


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


@pytest.mark.parametrize(("task", "view"), VIEWS)
def test_every_view_opens_in_both_languages_and_themes(
    visitor: Visitor, urls: dict[str, str], task: str, view: str
) -> None:
    titles = set()
    for language, theme in (("en", "light"), ("ko", "dark")):
        page = visitor.open(urls[task], view=view, language=language, theme=theme)
        assert page.locator("html").get_attribute("lang") == language
        assert page.locator("html").get_attribute("data-theme") == theme
        assert len(page.locator("main").inner_text()) > 40
        assert not re.search(r"\b(undefined|NaN)\b|\[object|\{\w+\}", page.locator("#app").inner_text())
        titles.add(page.title())
    assert len(titles) == 2


def test_every_view_is_reached_and_used_by_keyboard(visitor: Visitor, urls: dict[str, str]) -> None:
    """Enter on a link shows the view, Tab leads into it, and a control that was used keeps the focus."""
    for task, view in VIEWS:
        page = visitor.open(urls[task], view="home" if view != "home" else "atlas")
        page.locator(f'nav a[data-view="{view}"]').focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(f'body[data-shown^="{view} "]')
        assert page.evaluate("() => document.activeElement.dataset.view") == view
        page.locator("nav a").last.focus()
        page.keyboard.press("Tab")
        assert page.evaluate("() => document.querySelector('main').contains(document.activeElement)"), view
    for place, role, name, changed in (
        ({"view": "journey"}, "button", "Next →", "name="),
        ({"view": "atlas"}, "button", "One query", "form=bars"),
        ({"view": "knockout"}, "switch", "decoder.0.cross head 0", "off="),
        ({"view": "positions"}, "button", "removed", "change=removed"),
    ):
        page = visitor.open(urls["translator"], **place)
        page.get_by_role(role, name=name, exact=True).focus()
        page.keyboard.press("Enter")
        page.wait_for_function("(text) => location.hash.includes(text)", arg=changed)
        page.wait_for_function("() => document.querySelector('main').contains(document.activeElement)")
        assert name in page.evaluate("() => document.activeElement.ariaLabel ?? document.activeElement.textContent")


@pytest.mark.parametrize("stage", ["scores", "masked", "weights", "mixed"])
def test_cells_of_the_atlas_are_read_by_keyboard_and_are_the_model_s(opened: Any, trace: Trace, stage: str) -> None:
    page = opened(view="atlas", kind="decoder.self", layer=0, head=1, stage=stage)
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


def test_predictions_of_the_journey_are_the_model_s(opened: Any, trace: Trace) -> None:
    for step in range(2):
        page = opened(view="journey", name="logits", step=step)
        cells = page.locator("[data-probability]")
        assert cells.count() == 10
        for index in range(3):
            token = int(cells.nth(index).get_attribute("data-probability"))
            assert shows(cells.nth(index).inner_text(), float(trace["probabilities"].values[step, token]))
            logit = page.locator(f'[data-logit="{token}"]').inner_text()
            assert shows(logit, float(trace["logits"].values[step, token]))


def test_statistics_and_formula_of_a_box_are_the_model_s(opened: Any, trace: Trace) -> None:
    page = opened(view="journey", name="encoder.0.self.output")
    values = trace["encoder.0.self.output"].values
    expected = {"min": values.min(), "mean": values.mean(), "max": values.max(), "norm": np.linalg.norm(values)}
    for key, value in expected.items():
        assert shows(page.locator(f'[data-statistic="{key}"]').inner_text(), float(value)), key
    page = opened(view="journey", name="encoder.0.self.scores", head=0)
    page.locator(".journey-detail canvas").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('.numbers').textContent.includes('=')")
    said = page.locator(".numbers").inner_text()
    assert shows(said.split("= ")[-1], float(trace["encoder.0.self.scores"].values[0, 0, 0])), said
    assert "src/jumok/model/attention.py:" in page.locator(".journey-head").inner_text()


def test_the_beam_tree_shows_the_search(opened: Any, trace: Trace) -> None:
    page = opened(view="beams")
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


def test_a_forced_token_goes_on_from_there(opened: Any, trace: Trace) -> None:
    page = opened(view="beams", node=0)
    assert trace.search is not None
    token, text, _ = trace.search.nodes[0].top[2]
    page.locator(".beam-detail .bars button").nth(2).click()
    page.wait_for_function(f"() => location.hash.includes('force={token}')")
    page.wait_for_selector(".node >> text=" + text.lstrip("▁")[:6])


def test_switching_a_head_off_shows_what_the_model_then_says(opened: Any, session: Session, trace: Trace) -> None:
    page = opened(view="knockout")
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


def test_heads_are_ranked_with_progress(opened: Any) -> None:
    page = opened(view="knockout")
    page.get_by_role("button", name="Rank all heads").click()
    page.wait_for_function("() => document.querySelectorAll('.ranking li').length === 6")
    shown = [as_number(text) for text in page.locator(".ranking li > span").all_inner_texts()]
    assert shown == sorted(shown)


def test_positions_are_the_formula_and_their_change_is_the_model_s(opened: Any, session: Session) -> None:
    page = opened(view="positions", d_model=16, length=20, change="removed")
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


def test_beta_is_previewed_as_the_model_computes_it(opened: Any, session: Session) -> None:
    page = opened(view="softhard", name="decoder.0.cross.scores", head=0, query=2, beta=120)
    beta = as_number(re.findall(r"β = ([\d.e−]+)", page.locator("main .readout").first.inner_text())[0])
    exact = 10 ** (-3 + 6 * 120 / 200) / math.sqrt(8)
    assert beta == pytest.approx(exact, abs=1e-4)
    with lens.changed(session.model(0), beta=exact, attention="decoder.0.cross"):
        weights = lens.trace(session.model(0), TEXT, target_ids=lens.trace(session.model(0), TEXT).facts["chosen"][:-1])
    for key, value in enumerate(weights["decoder.0.cross.weights"].values[0, 2]):
        text = page.locator(f'[data-weight="{key}"]').inner_text()
        assert math.isclose(as_number(text), float(value), rel_tol=0.01, abs_tol=6e-4), (key, text, value)


def test_a_typed_sentence_is_translated_and_kept_in_the_address(opened: Any, session: Session) -> None:
    page = opened(view="atlas")
    other = "The small dog sees the cat."
    page.locator("#sentence").fill(other)
    expected = session.model(0).translate(other)
    page.wait_for_function("(text) => document.querySelector('.answer').textContent === text", arg=expected)
    assert "text=The+small+dog" in page.url


def test_the_greedy_translation_is_shown_and_called_so_until_the_beam_search_is_over(
    opened: Any, session: Session
) -> None:
    page, model = opened(view="atlas"), session.model(0)
    text = "The red horse did not see the cat."
    assert model.translate(text, beam=1) != model.translate(text)
    held: list[Any] = []

    def hold(route: Any) -> None:
        if '"beam":1' in route.request.post_data:
            route.continue_()
        else:
            held.append(route)

    page.route("**/api/trace", hold)
    page.locator("#sentence").fill(text)
    page.wait_for_selector('body[data-shown^="greedy atlas "]')
    greedy = lens.trace(model, text, beam=1)
    assert page.locator(".answer.greedy").inner_text() == greedy.output
    assert page.locator(".status").inner_text() == "Greedy translation; the beam search is running …"
    page.locator(".atlas-big canvas").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowDown")
    weights = greedy["decoder.0.cross.weights"].values
    assert shows(page.locator(".atlas-big .readout").inner_text().split()[-1], float(weights[0, 1, -1]))
    while not held:
        page.wait_for_timeout(10)
    held[0].continue_()
    page.wait_for_selector('body[data-shown^="atlas "]')
    page.unroute("**/api/trace")
    assert page.locator(".answer:not(.greedy)").inner_text() == model.translate(text)
    assert page.locator(".status").inner_text() == ""


def test_letters_typed_quickly_are_one_step_back(opened: Any) -> None:
    page = opened(view="home")
    page.locator("#sentence").press("End")
    page.keyboard.type(" The")
    page.wait_for_function("() => location.hash.includes('horse.+The')")
    page.go_back()
    page.wait_for_function("(text) => document.querySelector('#sentence').value === text", arg=TEXT)


@pytest.mark.parametrize("task", ["translator", "classifier", "language_model", "image_classifier", "painter"])
def test_a_saved_page_opens_as_a_file_and_offers_only_what_it_holds(
    visitor: Visitor, sessions: Sessions, tmp_path: Path, task: str
) -> None:
    session, start = sessions[task]
    path = tmp_path / "page.html"
    save_page(saved_start(session, start), path)
    page = visitor.open(path.as_uri(), view="home")
    offered = page.locator("nav a").evaluate_all("(links) => links.map((link) => link.dataset.view)")
    for view in offered:
        page = visitor.open(path.as_uri(), view=view)
        assert len(page.locator("main").inner_text()) > 30
        assert "left out of the saved page" not in page.locator("main").inner_text()
    page = visitor.open(path.as_uri(), view="home", language="ko")
    traced = start.get("files", {}).get(start["text"], start["text"])
    assert page.locator(".answer").inner_text() == lens.trace(session.model(0), traced).output
    assert page.locator(".settings select").count() == 0  # no other model
    assert page.locator("#sentence").is_disabled()  # no other sentence
    assert page.locator(".sample").count() == 0
    missing = page.locator("[data-left-out]").evaluate_all("(items) => items.map((item) => item.dataset.leftOut)")
    assert missing == (["models", "model"] if task == "translator" else ["model"])


def test_a_saved_page_replays_the_training_and_compares_greedy_search(
    visitor: Visitor, session: Session, tmp_path: Path
) -> None:
    save_page(saved_start(session, {"text": TEXT, "path": "run"}), tmp_path / "page.html")
    page = visitor.open((tmp_path / "page.html").as_uri(), view="training")
    assert page.locator("[data-replay]").inner_text() == "validation at step 15"
    page.locator("input[type=range]").fill("0")
    page.wait_for_selector("text=validation at step 5")
    page = visitor.open((tmp_path / "page.html").as_uri(), view="beams")
    assert page.locator(".segments >> text=Beam").all_inner_texts() == ["Beam 1", "Beam 5"]
    page.get_by_role("button", name="Beam 1").click()
    page.wait_for_function("() => location.hash.includes('beam=1')")
    expected = lens.trace(session.model(0), TEXT, beam=1)
    assert expected.search is not None
    page.wait_for_function(
        "(count) => document.querySelectorAll('.node').length === count", arg=len(expected.search.nodes)
    )


# The rest of what axe finds takes long to send.
RUN_AXE = "(options) => axe.run(options).then(({ passes, violations }) => ({ passed: passes.length, violations }))"


def test_no_serious_violation_of_accessibility(visitor: Visitor, urls: dict[str, str]) -> None:
    base = pytest.importorskip("axe_playwright_python.base", reason="axe is not installed.")
    serious = []
    for task, view in VIEWS:
        for theme, options in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):  # only colours differ
            page = visitor.open(urls[task], view=view, theme=theme)
            if not page.evaluate("() => Boolean(window.axe)"):
                page.evaluate(base.AXE_SCRIPT)
            found = page.evaluate(RUN_AXE, {"resultTypes": ["violations"], **options})
            assert found["passed"]
            serious += [
                (view, theme, one["id"], one["nodes"][0]["html"][:120])
                for one in found["violations"]
                if one["impact"] in ("serious", "critical")
            ]
    assert not serious


# Presses a button that saves a file; what would be downloaded is returned as base64, which is much quicker.
SAVE = """
async (button) => {
  const [make, click] = [URL.createObjectURL, HTMLAnchorElement.prototype.click];
  const blob = await new Promise((resolve) => {
    URL.createObjectURL = (made) => (resolve(made), "blob:");
    HTMLAnchorElement.prototype.click = () => {};
    button.click();
  });
  await new Promise((resolve) => setTimeout(resolve));
  [URL.createObjectURL, HTMLAnchorElement.prototype.click] = [make, click];
  return btoa(Array.from(new Uint8Array(await blob.arrayBuffer()), (byte) => String.fromCharCode(byte)).join(""));
}
"""


def saved(figure: Any, name: str) -> bytes:
    """The file that a button of a figure saves."""
    return base64.b64decode(figure.get_by_role("button", name=name).evaluate(SAVE))


PLACES: list[tuple[str, dict[str, Any]]] = [
    ("translator", {"view": "journey", "name": "encoder.ids"}),
    ("translator", {"view": "journey", "name": "decoder.0.self.q", "head": 1, "step": 2}),
    ("translator", {"view": "journey", "name": "encoder.0.feed_forward.hidden"}),
    ("translator", {"view": "journey", "name": "logits", "step": 1}),
    ("translator", {"view": "atlas", "kind": "cross", "layer": 0, "head": 1}),
    ("translator", {"view": "atlas", "kind": "decoder.self", "units": "words", "form": "lines"}),
    ("translator", {"view": "atlas", "kind": "decoder.self", "stage": "masked", "form": "bars", "query": 2}),
    ("translator", {"view": "journey", "name": "decoder.0.self.mask"}),
    ("translator", {"view": "knockout", "off": "decoder.0.cross/0,encoder.0.self/1", "way": "uniform"}),
    ("translator", {"view": "knockout", "off": "decoder.0.cross/0,encoder.0.self/1", "way": "mean"}),
    ("translator", {"view": "beams", "beam": 2, "node": 1}),
    ("translator", {"view": "positions", "d_model": 16, "length": 20, "base": 500, "dimension": 5, "shift": 3}),
    ("translator", {"view": "softhard", "name": "decoder.0.self.scores", "head": 1, "query": 2, "beta": 120}),
    ("translator", {"view": "softhard", "beta": 200}),
    ("translator", {"view": "training"}),
    ("translator", {"view": "compare", "with": 1, "name": "encoder.0.self.weights", "head": 1}),
    ("translator", {"view": "compare", "other": "The red cat likes the horse.", "name": "encoder.0.self.weights"}),
    ("classifier", {"view": "decision"}),
    ("classifier", {"view": "journey", "name": "encoder.1.self.weights", "head": 1}),
    ("classifier", {"view": "journey", "name": "encoder.1.self.output", "text": LONG_TEXT, "window": 1}),
    ("classifier", {"view": "atlas", "text": LONG_TEXT, "window": 1, "layer": 1, "head": 1}),
    ("classifier", {"view": "softhard", "text": LONG_TEXT, "window": 1, "query": 2}),
    ("classifier", {"view": "compare", "text": LONG_TEXT, "other": OTHER_TEXT * 3, "window": 1}),
    ("language_model", {"view": "surprise", "step": 1}),
    ("language_model", {"view": "knockout", "off": "decoder.1.self/0"}),
    ("image_classifier", {"view": "patches"}),
    ("image_classifier", {"view": "patches", "label": "star", "other": "cross", "query": 4, "layer": 1, "head": 0}),
    ("image_classifier", {"view": "journey", "name": "encoder.embedded"}),
    ("painter", {"view": "painting", "seed": 2, "guidance": 1}),
    ("painter", {"view": "painting", "step": 4, "word": 1, "layer": 0, "head": 1}),
    ("painter", {"view": "atlas", "kind": "cross"}),
]


@pytest.mark.parametrize(("task", "place"), PLACES, ids=[f"{task}-{place['view']}" for task, place in PLACES])
def test_every_figure_is_saved_as_png_svg_and_csv_and_its_copied_python_gets_these_numbers(
    visitor: Visitor,
    urls: dict[str, str],
    sessions: Sessions,
    monkeypatch: pytest.MonkeyPatch,
    task: str,
    place: dict[str, Any],
) -> None:
    if task != "translator":  # this one is a directory, and is really loaded
        monkeypatch.setattr(jumok, "load", lambda _path, _engine: sessions[task][0].model(0))
    page = visitor.open(urls[task], **place)
    figures = page.locator("figure")
    assert figures.count() > 0
    for figure in figures.all():
        if figure.get_by_role("button", name="Rank all heads").count():
            figure.get_by_role("button", name="Rank all heads").click()
            figure.get_by_role("button", name="Rank all heads").wait_for()
        assert saved(figure, "PNG").startswith(b"\x89PNG")
        picture = saved(figure, "SVG").decode()
        assert ElementTree.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(--" not in picture
        shown = numbers_of_table(saved(figure, "CSV").decode("utf-8-sig"))
        figure.get_by_role("button", name="Copy Python").click()
        figure.get_by_role("button", name="Copied").wait_for()
        code: dict[str, Any] = {}
        exec(page.evaluate("() => navigator.clipboard.readText()"), code)
        values = numbers_of_values(code["values"])
        assert len(values) == len(shown) > 0
        there = ~np.isnan(shown)  # a masked cell is empty
        np.testing.assert_allclose(np.array(values)[there], np.array(shown)[there], rtol=1e-4, atol=2e-5)


def test_padding_and_the_future_are_hatched_differently_everywhere(visitor: Visitor, urls: dict[str, str]) -> None:
    last = {"text": LONG_TEXT, "window": 1, "name": "encoder.0.self.weights"}
    for task, place, there, absent in (
        ("translator", {"view": "journey", "name": "decoder.0.self.weights"}, "future", "padding"),
        ("translator", {"view": "journey", "name": "decoder.0.self.mask"}, "future", "padding"),
        ("translator", {"view": "atlas", "kind": "decoder.self"}, "future", "padding"),
        ("translator", {"view": "compare", "name": "decoder.0.self.weights"}, "future", "padding"),
        ("classifier", {"view": "journey", **last}, "padding", "future"),
        ("classifier", {"view": "atlas", **last}, "padding", "future"),
        ("classifier", {"view": "compare", **last}, "padding", "future"),
    ):
        page = visitor.open(urls[task], **place)
        figure = page.locator("figure:has(canvas)")
        assert figure.locator(f".legend .{there}").count() == 1, (task, place)
        assert figure.locator(f".legend .{absent}").count() == 0
        picture = saved(figure, "SVG").decode()
        assert f"url(#{there})" in picture
        assert f"url(#{absent})" not in picture
        backgrounds = page.locator(".thumbnail canvas").evaluate_all("(all) => all.map((one) => one.className)")
        assert set(backgrounds) <= {"padding" if there == "padding" else ""}
    for task, place, there in (
        ("translator", {"view": "softhard", "name": "decoder.0.self.scores", "query": 1}, "future"),
        ("classifier", {"view": "softhard", "text": LONG_TEXT, "window": 1, "query": 1}, "padding"),
        ("classifier", {"view": "atlas", "form": "bars", **last}, "padding"),
    ):
        page = visitor.open(urls[task], **place)
        hatched = page.locator(f".bar.{there}")
        assert hatched.count() > 0
        assert hatched.count() == page.locator(".bar-value >> text=masked").count()


def test_a_window_of_a_long_text_has_its_own_tokens(visitor: Visitor, urls: dict[str, str], sessions: Sessions) -> None:
    traced = lens.trace(sessions["classifier"][0].model(0), LONG_TEXT)
    values = traced["encoder.0.self.weights"].values
    windows, width = values.shape[0], values.shape[2]
    assert windows > 1
    page = visitor.open(urls["classifier"], view="journey", text=LONG_TEXT, name="encoder.0.self.weights", window=1)
    page.locator(".journey-detail canvas").focus()
    page.keyboard.press("ArrowRight")
    said = page.locator(".journey-detail .readout").inner_text()
    first = traced.sides["encoder"][width].lstrip("\u2581")
    assert said.startswith(f"{first}, {first}: ")
    assert shows(said.split(": ")[1], float(values[1, 0, 0, 0]))
    page.get_by_label("window").select_option("0")
    page.wait_for_function("() => location.hash.includes('window=0')")


def test_panning_a_large_map_paints_no_cell_again_and_leaves_time_for_60_frames_a_second(opened: Any) -> None:
    page = opened(view="atlas", kind="encoder.self", text=" ".join([TEXT[:-1]] * 24))
    for _ in range(6):
        page.locator(".atlas-big canvas").press("+")
    page.evaluate(COUNT_PAINTING)
    performance = page.context.new_cdp_session(page)
    performance.send("Performance.enable", {"timeDomain": "threadTicks"})  # CPU time: it does not depend on the load

    def busy() -> float:
        metrics = performance.send("Performance.getMetrics")["metrics"]
        return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")

    box = page.locator(".atlas-big .map-scroller").bounding_box()
    page.mouse.move(box["x"] + 500, box["y"] + 400)
    page.mouse.down()
    page.evaluate("() => (window.painted = 0)")  # the cursor was painted
    before, moves = busy(), 60
    page.mouse.move(box["x"] + 100, box["y"] + 150, steps=moves)
    work = (busy() - before) / moves
    painted = page.evaluate("() => window.painted")
    page.mouse.up()
    moved = page.locator(".atlas-big .map-scroller").evaluate("(map) => [map.scrollLeft, map.scrollTop]")
    assert moved == [400, 250]
    assert painted == 0
    assert work < 1 / 60


def test_back_and_forward_go_through_the_places(opened: Any) -> None:
    page = opened(view="home")
    page.get_by_role("link", name="Head knock-out").click()
    page.wait_for_selector('body[data-shown^="knockout "]')
    page.go_back()
    page.wait_for_selector('body[data-shown^="home "]')
    page.go_forward()
    page.wait_for_selector('body[data-shown^="knockout "]')


def test_a_syllable_being_composed_is_not_sent_to_the_model(opened: Any) -> None:
    page = opened(view="home")
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


def test_the_decision_of_a_classifier_is_explained_with_its_numbers(
    visitor: Visitor, urls: dict[str, str], sessions: Sessions
) -> None:
    page = visitor.open(urls["classifier"], view="decision")
    classifier: Any = sessions["classifier"][0].model(0)
    found = lens.attribution(classifier, OTHER_TEXT)
    for index, value in enumerate(found.totals):
        assert shows(page.locator(f'[data-attribution="{index}"]').inner_text(), value)
    for key in ("baseline", "error", "difference"):
        assert shows(page.locator(f'[data-sum="{key}"]').inner_text(), getattr(found, key))
    shares = sorted(classifier.classify(OTHER_TEXT).probabilities.values(), reverse=True)
    assert [as_number(one) for one in page.locator("figure").first.locator("[data-bar]").all_text_contents()] == (
        pytest.approx(shares, abs=6e-4)
    )
    views = page.locator("nav a").evaluate_all("(links) => links.map((link) => link.dataset.view)")
    assert "decision" in views
    assert not {"beams", "surprise", "training"} & set(views)


def test_the_surprise_of_a_language_model_is_the_model_s(
    visitor: Visitor, urls: dict[str, str], sessions: Sessions
) -> None:
    page = visitor.open(urls["language_model"], view="surprise")
    traced = lens.trace(sessions["language_model"][0].model(0), OTHER_TEXT)
    bits = traced["surprise"].values
    for index, value in enumerate(bits):
        assert shows(page.locator(f'[data-bits="{index}"]').inner_text(), float(value))
    assert shows(page.locator('[data-surprise="total"]').inner_text(), float(bits.sum(dtype=float)))
    shares = traced["decoder.1.layer_probabilities"].values
    assert shows(page.locator('[data-layer="1/2"]').inner_text(), float(shares[2, 0]))


def test_two_checkpoints_are_compared(opened: Any, session: Session, trace: Trace) -> None:
    page = opened(view="compare", **{"with": 1})
    other = lens.trace(session.model(1), TEXT)
    assert trace.search is not None
    assert other.search is not None
    scores = [one.search.nodes[one.search.best].score for one in (trace, other) if one.search]
    assert scores[0] != pytest.approx(scores[1], abs=1e-3)  # the checkpoints differ
    assert shows(page.locator('[data-difference="score"]').inner_text(), scores[1] - scores[0])


def test_the_learning_rate_is_shown_beside_the_formula_with_the_settings_of_the_run(opened: Any) -> None:
    page = opened(view="training")
    figure = page.locator("figure", has_text="Learning rate")
    assert "peak 0.002 and the 8 warm-up steps" in figure.inner_text()
    with page.expect_download() as download:
        figure.get_by_role("button", name="CSV").click()
    numbers = numbers_of_table(Path(download.value.path()).read_text(encoding="utf-8-sig"))
    formula = dict(zip(numbers[38::2], numbers[39::2], strict=True))  # behind the 19 logged rates
    assert formula[4] == pytest.approx(0.002 * 4 / 8)
    assert formula[18] == pytest.approx(0.002 * math.sqrt(8 / 18))


def test_back_shows_the_sentence_of_before_in_its_box(opened: Any) -> None:
    page = opened(view="home")
    page.locator("#sentence").fill("The small dog sees the cat.")
    page.wait_for_function("() => location.hash.includes('small')")
    page.go_back()
    page.wait_for_function("(text) => document.querySelector('#sentence').value === text", arg=TEXT)


def test_a_trace_in_a_notebook_can_be_clicked(visitor: Visitor, trace: Trace, sessions: Sessions) -> None:
    pictures = lens.trace(sessions["image_classifier"][0].model(0), PIXELS)
    for one, view, found in (
        (trace, "Attention atlas", ".atlas-big canvas"),
        (pictures, "Picture and patches", "figure >> text=What each patch adds"),
    ):
        page = visitor.page
        page.goto("about:blank")
        page.set_content(one._repr_html_())
        frame = page.frame_locator("iframe")
        frame.get_by_role("link", name=view).click()
        frame.locator(found).wait_for()
        assert frame.locator(".answer").inner_text() == one.output


def test_patches_of_a_picture_add_up_to_the_decision_of_its_classifier(
    visitor: Visitor, urls: dict[str, str], sessions: Sessions
) -> None:
    session, start = sessions["image_classifier"]
    traced = lens.trace(session.model(0), start["files"]["small.png"], hide=True)
    best, second = np.argsort(-traced["class_scores"].values)[:2]
    parts, scores, hidden = (traced[f"{name}_scores"].values for name in ("patch", "class", "hidden"))
    page = visitor.open(urls["image_classifier"], view="patches")
    difference = float(scores[best] - scores[second])
    total = float((parts[:, best] - parts[:, second]).sum())
    for key, value in (("patches", total), ("difference", difference)):
        assert shows(page.locator(f'[data-sum="{key}"]').inner_text(), value)
    bias = session.model(0).engine.model.head.bias
    assert shows(page.locator('[data-sum="bias"]').inner_text(), float(bias[best] - bias[second]))
    figure = page.locator("figure", has_text="What is lost if it is hidden")
    figure.locator("canvas").focus()
    for key in ("ArrowDown", "Home", "ArrowRight"):  # the first begins at the patch that counts most
        page.keyboard.press(key)
    said = figure.locator(".readout").inner_text()
    row, column = map(int, re.findall(r"row (\d), column (\d)", said)[0])
    assert column == 1
    one = hidden[3 * row + column]
    assert shows(said.split(": ")[1], difference - float(one[best] - one[second]))
    page.keyboard.press("Enter")  # its attention
    page.wait_for_selector(f"text=What the patch of row {row}, column 1 attends to")
    page.wait_for_selector('body[data-shown^="patches "]')


def test_a_picture_of_this_computer_is_opened_in_the_page(
    visitor: Visitor, urls: dict[str, str], sessions: Sessions
) -> None:
    page = visitor.open(urls["image_classifier"], view="home")
    other = png_bytes(255 - PIXELS.transpose(1, 0, 2))
    page.locator("input[type=file]").set_input_files({"name": "mine.png", "mimeType": "image/png", "buffer": other})
    page.wait_for_selector(".pair >> text=mine.png")
    classifier = sessions["image_classifier"][0].model(0)
    assert page.locator(".answer").inner_text() == classifier.classify(other).label
    assert page.locator("#sentence").input_value() == "mine.png"


def test_tokens_of_a_painting_show_their_words_and_words_where_they_act(
    visitor: Visitor, urls: dict[str, str], sessions: Sessions
) -> None:
    painter = sessions["painter"][0].model(0)
    traced = lens.trace(painter, OTHER_TEXT)
    page = visitor.open(urls["painter"], view="painting", step=4)
    weights = np.mean([traced[f"decoder.{layer}.cross.weights"].values for layer in range(2)], 0).mean(0)
    starts = [i for i, token in enumerate(traced.sides["encoder"]) if token.startswith(("\u2581", "<"))]
    words = np.add.reduceat(weights, starts, 1)  # token × word
    assert page.locator("[data-word]").count() == words.shape[1]
    for word in range(words.shape[1]):
        assert shows(page.locator(f'[data-word="{word}"]').inner_text(), float(words[4, word]))
    assert shows(page.locator('[data-token="gain"]').inner_text(), float(traced["caption_gain"].values[4]))
    token = traced.facts["chosen"][4]
    assert shows(
        page.locator('[data-token="probability"]').inner_text(), float(traced["probabilities"].values[4, token])
    )
    page.locator('[data-word="1"]').click()
    page.wait_for_selector("text=Where “dog” acts")
    figure = page.locator("figure", has_text="Where “dog” acts")
    figure.locator("canvas").focus()
    page.keyboard.press("ArrowLeft")
    assert shows(figure.locator(".readout").inner_text().split(": ")[1], float(words[4, 1]))
    page.locator("input[type=range]").fill("2")  # as after two steps
    assert page.locator(".painting-side h3").inner_text() == f"Token {traced.sides['chosen'][1]} at row 0, column 1"
    assert shows(page.locator('[data-word="0"]').inner_text(), float(words[1, 0]))


def test_another_picture_is_painted_with_another_seed(
    visitor: Visitor, urls: dict[str, str], sessions: Sessions
) -> None:
    page = visitor.open(urls["painter"], view="painting", guidance=4)
    page.get_by_role("button", name="Paint another").click()
    page.wait_for_selector("text=seed 1, guidance 4")
    painter = sessions["painter"][0].model(0)
    with page.expect_download() as download:
        page.locator("figure").first.get_by_role("button", name="CSV").click()
    shown = numbers_of_table(Path(download.value.path()).read_text(encoding="utf-8-sig"))
    assert shown == painter.paint_arrays([OTHER_TEXT], seed=1, guidance=4)[0][0].flatten().tolist()
    page.locator("#sentence").fill("cat zebra .")
    page.wait_for_selector("text=No caption of the training has these words")
    assert "zebra" in page.locator(".status").inner_text()


def test_arrays_of_a_trace_that_the_server_no_longer_keeps_are_shown(
    opened: Any, visitor: Visitor, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jumok.lens.session.KEPT_TRACES", 1)
    page = opened(view="journey", text=f"{TEXT} ")
    other = {"method": "POST", "headers": {"Content-Type": "application/json"}, "body": '{"text": "horse"}'}
    assert page.evaluate("async (options) => (await fetch('/api/trace', options)).status", other) == 200
    visitor.open(page.url.split("#")[0], view="journey", text=f"{TEXT} ", name="encoder.0.self.q")
    values = trace["encoder.0.self.q"].values[0]
    assert shows(page.locator('[data-statistic="max"]').inner_text(), float(values.max()))
    assert all("422" in error for error in visitor.errors)  # the browser notes that the first request failed
    visitor.errors.clear()


def test_masked_cells_have_no_difference(opened: Any) -> None:
    page = opened(view="compare", name="decoder.0.self.weights")
    page.locator("figure canvas").focus()
    page.keyboard.press("End")
    assert "masked" in page.locator("figure .readout").inner_text()


def test_a_narrow_window_has_no_sideways_scrolling(opened: Any, visitor: Visitor) -> None:
    size = visitor.page.viewport_size
    visitor.page.set_viewport_size({"width": 390, "height": 800})
    try:
        for view in TRANSLATOR:
            page = opened(view=view, text=f"{TEXT} {TEXT}")
            assert page.evaluate("document.documentElement.scrollWidth") == 390, view
    finally:
        visitor.page.set_viewport_size(size)


def test_an_address_with_nonsense_shows_the_view_all_the_same(visitor: Visitor, urls: dict[str, str]) -> None:
    nonsense = dict.fromkeys(("layer", "head", "query", "step", "node", "window", "model"), "x") | {"beam": "-1"}
    words = dict.fromkeys(("kind", "stage", "form", "units", "order", "way", "name"), "<b>")
    for view in TRANSLATOR:
        page = visitor.open(urls["translator"], view=view, **nonsense, **words)
        assert len(page.locator("main").inner_text()) > 40
        assert not re.search(r"\b(undefined|NaN)\b", page.locator("#app").inner_text())


def test_a_node_of_the_beam_tree_is_in_sight_when_it_is_walked_to(opened: Any, visitor: Visitor) -> None:
    size = visitor.page.viewport_size
    visitor.page.set_viewport_size({"width": 420, "height": 800})
    try:
        page = opened(view="beams", node=0)
        page.locator('.node[tabindex="0"]').focus()
        for _ in range(3):
            place = "document.activeElement.getAttribute('transform')"
            before = page.evaluate(f"() => {place}")
            page.keyboard.press("ArrowRight")
            page.wait_for_function(f"(before) => {place} && {place} !== before", arg=before)
        node = page.locator('.node[aria-selected="true"] rect').bounding_box()
        tree = page.locator(".map-scroller").bounding_box()
        assert tree["x"] <= node["x"] + 1
        assert node["x"] + node["width"] <= tree["x"] + tree["width"] + 1
    finally:
        visitor.page.set_viewport_size(size)


def test_keys_pressed_faster_than_the_tree_is_drawn_all_count(opened: Any, trace: Trace) -> None:
    assert trace.search is not None
    parents = [node.parent for node in trace.search.nodes]
    first = parents.index(0)
    page = opened(view="beams", node=0)
    key = "new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true})"
    page.locator('.node[tabindex="0"]').evaluate(
        f"(node) => {{ for (let n = 0; n < 2; n += 1) node.dispatchEvent({key}); }}"
    )
    page.wait_for_function(f"() => location.hash.includes('node={parents.index(first)}')")


def test_a_figure_with_letters_that_xml_cannot_hold_is_saved(opened: Any) -> None:
    page = opened(view="compare", other="The\u00a0red \u0001horse \U0001f40e < & likes the horse.")
    figure = page.locator("figure").first
    assert ElementTree.fromstring(saved(figure, "SVG")) is not None
    assert saved(figure, "PNG").startswith(b"\x89PNG")
    names = page.evaluate(
        "async () => { const { barChart } = await import('jumok/chart.js');"
        " const rows = [{ name: '\\u{1f40e}'.repeat(30) + '\\u0001\\u00a0', values: [1] }];"
        " return barChart({ rows, series: ['a'], label: '' }).svg(); }"
    )
    assert ElementTree.fromstring(names) is not None


def test_a_text_that_cannot_be_shown_leaves_nothing_of_the_sentence_before(opened: Any, visitor: Visitor) -> None:
    page = opened(view="beams", text="The small dog sees the cat.")
    page.locator("#sentence").fill("cat " * 2_000)
    page.wait_for_selector("main >> text=at most 4,000 can be looked at")
    assert page.locator(".answer").inner_text() == ""
    assert page.locator("figure").count() == 0
    assert all("422" in error for error in visitor.errors)  # the browser notes that the request failed
    visitor.errors.clear()
    page.locator("#sentence").fill(TEXT)
    page.wait_for_selector("figure")
