"""The page and the picture of before_attention.py, and the tables in the two guides that show the same figures."""

from __future__ import annotations

import re
import textwrap
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "benchmarks" / "before_attention.md"
GUIDES = (ROOT / "docs" / "before_attention.md", ROOT / "docs" / "ko" / "before_attention.md")
MODELS = {"rnn": "`rnn`", "rnn-attention": "`rnn-attention`", "tiny": "`tiny`"}
TITLES = {"multi30k": "Multi30k, English–German", "built-in": "the built-in corpus, English–Korean"}
KOREAN = {
    "words and more": "단어 이상",
    "words": "단어",
    "sentences": "문장",
    "tokens from an end": "토큰",
    "tokens": "토큰",
    "source": "원문",
    "lines": "줄",
    "all sentences": "모든 문장의 길이",
    "distance": "거리",
}
HEAD = """`python benchmarks/before_attention.py --data DIRECTORY --work DIRECTORY` writes this page; the docstring of
that file says what is trained on and tested. BLEU is that of greedy search. [The guide](../docs/before_attention.md)
explains the three models."""
SPEED = """Forward and backward pass of untrained models, medians of 5 alternating rounds. The epoch has a
million target tokens, in sentences that are all of one length."""
REACH = """The norm of the gradient of the last output's loss with respect to the embeddings of source tokens, by their
distance from the nearer end of the source, in per cent of that of the nearest. (The recurrent encoder reads in both
directions, so that the way from the middle is the longest.)"""
NOT_TRAINED = {
    "docs": """These are untrained models. The whole benchmark also trains all three, on Multi30k and on the built-in
corpus, and adds BLEU by the length of the source.""",
    "ko": """학습하지 않은 모델로 잰 것입니다. 벤치마크 전체는 세 모델을 Multi30k와 내장 말뭉치로 학습하고, 원문 길이에
따른 BLEU도 잽니다.""",
}
TRAINED = {
    "docs": """The models have about as many parameters. These are the trainings on Multi30k, English–German:

{trained}

**Quality by length.** BLEU on test sentences of so many words, then on lines of two, three and four sentences joined.
The training data has such lines too, so that their length is nothing new to any model. If one vector is too small for a
long source, the column of `rnn` must fall more than the others:

{multi30k}

The same for the built-in English–Korean corpus, whose sentences are simpler, and whose verbs move to the end:

{built-in}""",
    "ko": """세 모델의 매개변수 수는 비슷합니다. 다음은 Multi30k 영어–독일어를 학습한 결과입니다.

{trained}

**길이에 따른 품질.** 원문의 단어 수로 나눈 시험 문장, 그리고 두세 문장, 네 문장을 이은 줄의 BLEU입니다. 학습
데이터에도 그런 줄이 있으므로 길이 자체는 어느 모델에도 낯설지 않습니다. 벡터 하나가 긴 원문에 너무 작다면 `rnn`
열이 다른 열보다 더 많이 떨어져야 합니다.

{multi30k}

문장이 더 단순하고 동사가 끝으로 가는 내장 영어–한국어 말뭉치의 결과는 이렇습니다.

{built-in}""",
}
SAID = {
    "docs": """\
- **Quality.** Lines of four sentences score on Multi30k {multi30k[0]} with `rnn`, {multi30k[1]} with \
`rnn-attention` and {multi30k[2]} with `tiny`; on the built-in corpus {built-in[0]}, {built-in[1]} and \
{built-in[2]}. In brackets: in per cent of what sentences of 9–12 words score.
- **Time.** From sentences of {first} tokens to sentences of {last}, the time of a token grows to \
{growth[0]} times with `rnn`, {growth[1]} times with `rnn-attention` and {growth[2]} times with `tiny`.
- **Distance.** At {far} tokens, {left[0]} of the gradient is left with an untrained `rnn`, {left[1]} with \
`rnn-attention` and {left[2]} with `tiny`.""",
    "ko": """\
- **품질.** 네 문장을 이은 줄의 BLEU는 Multi30k에서 `rnn` {multi30k[0]}, `rnn-attention` {multi30k[1]}, \
`tiny` {multi30k[2]}이고, 내장 말뭉치에서는 차례로 {built-in[0]}, {built-in[1]}, {built-in[2]}입니다. \
괄호 안은 9–12단어 문장의 BLEU에 대한 비율입니다.
- **시간.** 문장이 {first}토큰에서 {last}토큰으로 길어지면 토큰 하나에 드는 시간은 `rnn`이 \
{growth[0]}배, `rnn-attention`이 {growth[1]}배, `tiny`가 {growth[2]}배가 됩니다.
- **거리.** 학습하기 전에 {far}토큰 떨어진 곳에 남는 기울기는 `rnn`이 {left[0]}, `rnn-attention`이 {left[1]}, `tiny`가 \
{left[2]}입니다.""",
}
COLOURS = {"rnn": "tab:orange", "rnn-attention": "tab:green", "tiny": "tab:blue"}


def table(heading: list[str], rows: list[list[str]]) -> list[str]:
    """A Markdown table."""
    lines = [heading, ["---"] * len(heading), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def of_model(results: dict[str, Any], corpus: str, model: str, kind: str) -> dict[str, Any]:
    """A training. The Transformer's steps are those of its minutes."""
    found: dict[str, Any] = results["runs"][f"{corpus}-{model}-{'minutes' if model == 'tiny' else kind}"]
    return found


def quality(results: dict[str, Any], corpus: str, kind: str) -> list[str]:
    """BLEU by the length of the source."""
    runs = [of_model(results, corpus, model, kind) for model in MODELS]
    rows = [
        [label, str(first["lines"]), *(f"{run['scores'][label]['bleu']:.1f}" for run in runs)]
        for label, first in runs[0]["scores"].items()
    ]
    return table(["source", "lines", *MODELS.values()], rows)


def trained(results: dict[str, Any], corpus: str, kind: str) -> list[str]:
    """What each training was."""
    rows = []
    for model, title in MODELS.items():
        run = of_model(results, corpus, model, kind)
        rate = run["tokens"] / run["seconds"]
        numbers = f"{run['parameters'] / 1e6:.2f} M", f"{run['steps']:,}", f"{run['seconds']:.0f} s"
        rows.append([title, *numbers, f"{rate:,.0f}", f"{run['epoch_tokens'] / rate:.0f} s"])
    return table(["", "parameters", "steps", "trained", "target tokens/s", "an epoch"], rows)


def speed(results: dict[str, Any]) -> list[str]:
    """Seconds of an epoch of a million target tokens, were all sentences of one length: microseconds for a token."""
    times = results["speed"]
    rows = [[f"{length} tokens", *(f"{times[model][length]:.0f} s" for model in MODELS)] for length in times["tiny"]]
    return table(["all sentences", *MODELS.values()], rows)


def reach(results: dict[str, Any], norms: dict[str, list[float]]) -> list[str]:
    """The norm of the gradient by distance, in per cent of the nearest."""
    rows = [
        [f"{low}–{high} tokens from an end", *(f"{_share(norms[model], at):.3g} %" for model in MODELS)]
        for at, (low, high) in enumerate(results["distances"][: len(norms["tiny"])])
    ]
    return table(["distance", *MODELS.values()], rows)


def _share(norms: list[float], at: int) -> float:
    return 100 * norms[at] / norms[0]


def page(results: dict[str, Any]) -> str:
    """The results as a Markdown page."""
    lines = ["# Before attention", "", HEAD, results["machine"], ""]
    lines += ["![the three models compared by length](before_attention.png)"]
    if "runs" in results:
        for corpus, title in TITLES.items():
            spent = results["minutes"] if corpus == "multi30k" else results["minutes"] / 2
            kinds = {"minutes": f"the same {spent:g} minutes", "steps": "the same steps, those of the Transformer"}
            for kind, words in kinds.items():
                lines += ["", f"## {title[0].upper()}{title[1:]}: {words}", "", *trained(results, corpus, kind)]
                lines += ["", "BLEU by the length of the source:", "", *quality(results, corpus, kind)]
    else:
        lines += ["", NOT_TRAINED["docs"]]
    lines += ["", "## Seconds of an epoch by length", "", SPEED, "", *speed(results)]
    lines += ["", "## How far gradients reach", "", REACH, "", "Untrained models, random tokens:", ""]
    lines += reach(results, results["reach"])
    if "runs" in results:
        lines += ["", "Trained on Multi30k, lines of four test sentences:", ""]
        lines += reach(results, results["reach_trained"])
    return "\n".join(lines) + "\n"


def blocks(results: dict[str, Any], language: str) -> dict[str, list[str]]:
    """What stands between the marks of a guide."""
    tables = {"speed": speed(results), "reach": reach(results, results["reach"])}
    if "runs" in results:
        tables["trained"] = trained(results, "multi30k", "minutes")
        tables |= {corpus: quality(results, corpus, "minutes") for corpus in TITLES}
    tables = {name: in_korean(lines) if language == "ko" else lines for name, lines in tables.items()}
    text = NOT_TRAINED[language]
    if "runs" in results:
        text = TRAINED[language].format(**{name: "\n".join(lines) for name, lines in tables.items()})
    found = {"machine": [results["machine"]], "quality": text.split("\n"), "said": said(results, language)}
    return found | {name: tables[name] for name in ("speed", "reach")}


def said(results: dict[str, Any], language: str) -> list[str]:
    """The tables in a few sentences."""
    times = results["speed"]
    first, *_, last = times["tiny"]
    values: dict[str, Any] = {"first": first, "last": last, "far": "–".join(map(str, results["distances"][-1]))}
    values["growth"] = [f"{times[model][last] / times[model][first]:.1f}" for model in MODELS]
    values["left"] = [f"{_share(results['reach'][model], -1):.2g} %" for model in MODELS]
    sentences = SAID[language].split("\n")
    for corpus in TITLES if "runs" in results else ():
        values[corpus] = []
        for model in MODELS:
            scores = [each["bleu"] for each in of_model(results, corpus, model, "minutes")["scores"].values()]
            values[corpus].append(f"{scores[-1]:.1f} ({100 * scores[-1] / max(scores[1], 0.1):.0f} %)")
    return [
        line
        for sentence in (sentences if "runs" in results else sentences[1:])  # the first is about quality
        for line in textwrap.wrap(sentence.format(**values), 100, subsequent_indent="  ", break_on_hyphens=False)
    ]


def in_korean(lines: list[str]) -> list[str]:
    """Labels of a table in Korean."""
    heads = {"parameters": "매개변수", "steps": "스텝", "trained": "학습 시간", "an epoch": "한 에포크"}
    heads |= {"target tokens/s": "초당 목표 토큰"}
    text = "\n".join(lines)
    for english, korean in sorted({**KOREAN, **heads}.items(), key=lambda pair: -len(pair[0])):
        text = re.sub(rf"(?<![`\w]){re.escape(english)}(?![`\w])", korean, text)
    return text.split("\n")


def write_page(results: dict[str, Any]) -> None:
    """Write the page, the picture, and the marked tables of the guides."""
    PAGE.write_text(page(results), encoding="utf-8")
    plot(results)
    for guide in GUIDES:
        text = guide.read_text(encoding="utf-8")
        for name, lines in blocks(results, guide.parent.name).items():
            shown = "\n".join(lines)
            begin, end = f"<!-- figures: {name} -->\n", "<!-- end -->"
            before, rest = text.split(begin)
            text = f"{before}{begin}{shown}\n{end}{rest.split(end, 1)[1]}"
        guide.write_text(text, encoding="utf-8")


def plot(results: dict[str, Any]) -> None:
    """Quality on both corpora (if models were trained), seconds of an epoch, the reach of gradients, side by side."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    corpora = TITLES if "runs" in results else {}
    figure, places = pyplot.subplots(1, len(corpora) + 2, figsize=(4.5 * (len(corpora) + 2), 4), layout="constrained")
    for place, (corpus, title) in zip(places, corpora.items(), strict=False):
        for model in MODELS:
            scores = of_model(results, corpus, model, "minutes")["scores"]
            labels = [label.replace(" words", "").replace(" and more", "+") for label in scores]
            place.plot(labels, [score["bleu"] for score in scores.values()], "o-", color=COLOURS[model], label=model)
        place.set(title=f"{title},\nthe same minutes", ylabel="BLEU", ylim=(0, None))
        place.tick_params(axis="x", rotation=45)
        place.set_xlabel("words of the source, then sentences in a line")
    time, reached = places[-2:]
    middles = [(low + high) / 2 for low, high in results["distances"]]
    for model in MODELS:
        times = results["speed"][model]
        time.loglog([int(length) for length in times], list(times.values()), "o-", color=COLOURS[model], label=model)
        shares = [_share(results["reach"][model], at) for at in range(len(middles))]
        reached.semilogy(middles, shares, "o-", color=COLOURS[model], label=model)
    time.set(title="a million target tokens", xlabel="tokens of every sentence", ylabel="seconds of training")
    reached.set(title="gradient of the last output, untrained", xlabel="tokens from the nearer end of the source")
    reached.set_ylabel("per cent of the nearest")
    for place in places:
        place.legend(fontsize=8)
    drawn = BytesIO()
    figure.savefig(drawn, dpi=110)
    Image.open(drawn).convert("RGB").quantize(64).save(PAGE.with_suffix(".png"), optimize=True)  # a small file
