"""How quick the explorer is, measured in a real Chromium: what a person waits for, and how large a saved page is.

python benchmarks/explorer.py            # rewrites explorer.md; trains `tiny` on the built-in corpus: four minutes
python benchmarks/explorer.py --run RUN  # with a translator of your own, in about a minute
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from machine import describe_machine
from playwright.sync_api import Page, sync_playwright

import jumok
from jumok.cli.look import open_session
from jumok.demo.pairs import write_demo_corpus
from jumok.lens.explorer import Explorer
from jumok.lens.saved import save_page, saved_start
from jumok.lens.session import Session

PAGE = Path(__file__).with_suffix(".md")
STEPS = 1_000  # of the training
ROUNDS = 9
LONG, SHORT = 100, 20  # tokens of a sentence
FRAMES = 120
PAUSE = 120  # milliseconds between two letters of someone who types quickly
# Keeps in the page when the last letter was typed, when answers of the model came, and when views were painted. A view
# of the greedy translation is named "greedy atlas …", that of the beam search "atlas …".
WATCH = """
window.marks = { answered: [], painted: [] };
new PerformanceObserver((list) => list.getEntries().forEach((entry) => {
  if (entry.name.endsWith("/api/trace") && entry.responseStatus === 200) marks.answered.push(entry.responseEnd);
})).observe({ type: "resource" });
const begin = () => (window.marks = { typed: performance.now(), answered: [], painted: [] });
document.addEventListener("input", begin, true);
new MutationObserver(() => {
  const [now, { shown }] = [window.marks, document.body.dataset];
  const complete = document.querySelector(".answer").textContent && document.querySelector(".atlas-big canvas");
  requestAnimationFrame(() => setTimeout(() => complete && now.painted.push([performance.now(), shown])));
}).observe(document.body, { attributes: true, attributeFilter: ["data-shown"] });
"""
ALL_PAINTED = "() => marks.answered.length > 1 && marks.painted.some(([, shown]) => shown.startsWith('atlas '))"
# Drags a map to and fro, one step in each frame, and returns the times of the frames.
PAN = """
(frames) => new Promise((resolve) => {
  const scroller = document.querySelector(".atlas-big .map-scroller");
  const box = scroller.getBoundingClientRect();
  const point = (type, x) => scroller.dispatchEvent(
    new PointerEvent(type, { clientX: box.x + 300 + x, clientY: box.y + 200 + x / 2, buttons: 1, bubbles: true }));
  const times = [];
  point("pointerdown", 0);
  const step = (time) => {
    times.push(time);
    if (times.length > frames) { point("pointerup", 0); return resolve(times); }
    point("pointermove", -100 + 100 * Math.cos(times.length / 10));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})
"""


def train(directory: Path) -> Path:
    """The run of a `tiny` translator of the built-in corpus."""
    corpus = directory / "corpus"
    write_demo_corpus(corpus)
    files = corpus / "train.en", corpus / "train.ko"
    settings = {"preset": "tiny", "batch.tokens": 1_024, "validate.every": STEPS // 5}
    jumok.train_translator(*files, out=directory / "run", steps=STEPS, settings=settings)
    return directory / "run"


def sentence_of(tokens: int, tokenizer: Any, words: list[str]) -> str:
    """Words that are so many tokens together with `</s>`."""
    text = ""
    for word in (words * tokens)[: 2 * tokens]:
        longer = f"{text} {word}".strip()
        if len(tokenizer.encode([longer])[0]) >= tokens:
            break
        text = longer
    return text


@contextmanager
def opened(session: Session, start: dict[str, Any]) -> Iterator[Page]:
    """The page of the explorer in a browser."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    server = Explorer(session, 0, start)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(f"{server.url}#view=atlas")
        page.wait_for_selector('body[data-shown^="atlas "]')
        page.evaluate(WATCH)
        yield page
        browser.close()
    server.shutdown()


class Waits(NamedTuple):
    """Milliseconds after the last letter of a sentence."""

    answered: float  # the model has answered for the first time
    painted: float  # translation and attention are painted for the first time
    searched: float  # those of the beam search are painted


def wait(page: Page, text: str, pause: int = 0) -> Waits:
    """How long a person waits after typing the last letter of a sentence. With a pause, in milliseconds, the letters of
    the last word are typed one after another, so that the model is at work when the last one comes."""
    last = len(text.split()[-1]) if pause else 1
    page.locator("#sentence").fill(text[:-last])
    page.wait_for_function(ALL_PAINTED, timeout=60_000)
    page.wait_for_timeout(300)
    page.locator("#sentence").press("End")
    page.keyboard.type(text[-last:], delay=pause)
    page.wait_for_function(ALL_PAINTED, timeout=60_000)
    marks = page.evaluate("() => marks")
    return Waits(
        marks["answered"][0] - marks["typed"],
        marks["painted"][0][0] - marks["typed"],
        next(time for time, shown in marks["painted"] if shown.startswith("atlas ")) - marks["typed"],
    )


def pan(page: Page) -> tuple[float, float, float]:
    """Of panning a large map: the median and the slowest of the frames in 20, and the CPU time in a frame, in ms."""
    for _ in range(6):
        page.locator(".atlas-big canvas").press("+")
    performance = page.context.new_cdp_session(page)
    performance.send("Performance.enable", {"timeDomain": "threadTicks"})  # CPU time

    def busy() -> float:
        metrics = performance.send("Performance.getMetrics")["metrics"]
        return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")

    before = busy()
    times = page.evaluate(PAN, FRAMES)
    work = 1_000 * (busy() - before) / FRAMES
    intervals = sorted(after - then for then, after in pairwise(times))
    return statistics.median(intervals), intervals[int(0.95 * len(intervals))], work


def describe(times: list[float]) -> str:
    return f"{statistics.median(times):.0f} ms ({min(times):.0f}–{max(times):.0f})"


def saved_size(session: Session, text: str) -> tuple[float, int]:
    """Megabytes of the saved page of a sentence, and how many arrays were left out."""
    with tempfile.TemporaryDirectory() as directory:
        start = saved_start(session, {"text": text, "samples": [], "path": "run"})
        save_page(start, Path(directory, "page.html"))
        return Path(directory, "page.html").stat().st_size / 1e6, len(start["traces"][0]["trace"]["left_out"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="the run directory of a translator of preset tiny")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as directory:
        run = given.run or train(Path(directory))
        session, start = open_session(run, None)
        words = " ".join(start["samples"]).replace(".", "").replace("?", "").split()
        tokenizer = session.model(0).tokenizer
        long, short = (sentence_of(count, tokenizer, words) for count in (LONG, SHORT))
        natural = min(start["samples"], key=lambda text: abs(len(tokenizer.encode([text])[0]) + 1 - SHORT))
        tokens = len(tokenizer.encode([natural])[0]) + 1
        config = session.models()[0]["config"]
        with opened(session, start) as page:
            atlas = [waits.painted - waits.answered for waits in (wait(page, long) for _ in range(ROUNDS))]
            frame, slow, work = pan(page)
            typing = [wait(page, natural) for _ in range(ROUNDS)]
            quick = [wait(page, natural, PAUSE).painted for _ in range(ROUNDS)]
        first, searched = [waits.painted for waits in typing], [waits.searched for waits in typing]
        size, missing = saved_size(session, short)
    layers, vocabulary = f"{config['encoder_layers']}+{config['decoder_layers']}", f"{config['vocabulary']:,}"
    text = f"""# The explorer

`python benchmarks/explorer.py` writes this page: a `tiny` translator ({layers} layers, vocabulary {vocabulary}) in
headless Chromium, which draws without a graphics card. Medians of {ROUNDS} rounds, with the quickest and the slowest.
{describe_machine()}
Processes that were running or waiting for a core before it began: {load:.1f}; with more than a few, times say little.

| what | measured | target |
|---|---|---|
| atlas of {LONG} tokens, from the answer of the model until it is painted | {describe(atlas)} | ≤ 1,000 ms |
| {tokens} tokens, from the last letter until translation and attention are painted | {describe(first)} | ≤ 300 ms |
| … the last word typed with a letter every {PAUSE} ms | {describe(quick)} | ≤ 300 ms |
| … until those of the search with 5 beams are painted | {describe(searched)} | |
| saved page of {SHORT} tokens, {missing} of its arrays left out | {size:.2f} MB | ≤ 3 MB |
| panning the map of {LONG} tokens: a frame; 95 % of frames | {frame:.1f} ms; ≤ {slow:.1f} ms | 16.7 ms |
| … CPU time of the page's main thread in a frame | {work:.1f} ms | < 16.7 ms |

What is painted first is the greedy translation and its attention, which the page calls so; the search with 5 beams
follows. A letter that is typed while the model is at work ends that work.
"""
    PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
