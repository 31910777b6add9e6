"""Every figure in the README is the one on the page that it is taken from, with the page's worst and best round."""

import re
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MEASURED = README[README.index("## How good, how fast") : README.index("## Where everything is")]
FIRST = "from starting the command to the first sentence"
Row = dict[str, str]


def tables(text: str) -> list[list[Row]]:
    """The Markdown tables of a text, each row as column → cell; a column whose name appears again gets its index."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        lines = [[cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines()]
        names = [name if lines[0].index(name) == at else f"{name} {at}" for at, name in enumerate(lines[0])]
        found.append([dict(zip(names, cells, strict=False)) for cells in lines[2:]])
    return found


def page(name: str) -> str:
    return (ROOT / "benchmarks" / f"{name}.md").read_text(encoding="utf-8")


def row(name: str, *contained: str) -> Row:
    """The row of a page that contains all of these."""
    rows = [row for table in tables(page(name)) for row in table]
    (found,) = [row for row in rows if all(any(text in cell for cell in row.values()) for text in contained)]
    return found


def section(name: str, title: str) -> list[Row]:
    """The first table below a title of a page."""
    return tables(page(name).split(f"## {title}\n")[1])[0]


def ratio(cell: str) -> str:
    """`851 (5.46×; 5.43–6.58)` on the page of the peers is `5.46 (5.43–6.58)` in the README."""
    (found,) = re.findall(r"\(([\d.]+)×; ([\d.]+–[\d.]+)\)", cell)
    return f"{found[0]} ({found[1]})"


PEERS = {
    "JoeyNMT 2.3": "JoeyNMT",
    "OpenNMT-py 3.5": "OpenNMT-py",
    "Marian 1.12": "Marian (pymarian)",
    "Hugging Face 5.22": "Hugging Face",
    "CTranslate2 4.8 as its README shows": "CTranslate2, as its README shows",
}
COMPARED = {
    "training, `tiny`": ("Training, `tiny`", "target tokens/s"),
    "training, `base`": ("Training, `base`", "target tokens/s"),
    "a file, greedy": ("Translation, beam 1", "a file, sentences/s"),
    "a file, beam 5": ("Translation, beam 5", "a file, sentences/s"),
    "one sentence at a time, beam 5": ("Translation, beam 5", "one sentence at a time, sentences/s"),
}


def test_ratios_to_the_peers_are_those_of_their_page() -> None:
    compared = {row.pop(""): row for row in tables(MEASURED)[1]}
    assert compared.keys() == COMPARED.keys()
    for title, cells in compared.items():
        heading, column = COMPARED[title]
        measured = {row[""]: row[column] for row in section("peers", heading)}
        for peer, cell in cells.items():
            expected = ratio(measured[PEERS[peer]]) if PEERS[peer] in measured else ""
            assert cell.replace("**", "") == expected, f"{title}, {peer}"


def test_versions_of_the_peers_are_those_of_their_page() -> None:
    for name in PEERS:
        title, version = re.fullmatch(r"(.+?) ([\d.]+)(?: as .*)?", name).groups()  # type: ignore[union-attr]
        assert re.search(rf"{title}[^;]*: [\w-]+ {re.escape(version)}\.", page("peers")), name


def expected_figures() -> dict[str, str]:
    """Title of a row of the README's first table → what must stand there."""
    demo = row("first_minutes", "exactly right")["measured"].split(" sentences")[0]
    trained, raw, longer = (
        [
            found
            for found in tables(page("multi30k"))[0]
            if (found["files"], found["target"], found["length asked for"]) == (files, "de", f"{minutes} minutes")
        ]
        for files, minutes in (("lc.norm.tok", 20), ("raw", 20), ("lc.norm.tok", 60))
    )
    bits = {line[""].strip("*"): line["bits/byte"] for line in tables(page("language_model"))[0]}
    (start,) = [found for found in section("peers", "First sentence, memory, size") if found[""] == "Jumok"]
    kills = re.search(r"([\d,]+) kills and resumes", (ROOT / "docs/guarantees.md").read_text(encoding="utf-8"))
    assert kills
    return {
        "`jumok demo`: held-out sentences translated exactly right": f"{demo}, in {total_minutes()}",
        "Multi30k en→de, `--preset tiny --minutes 20`": bleu(trained),
        f"the same on raw files, which took {raw[0]['took'].removesuffix(' min')} minutes": bleu(raw),
        f"the tokenised files, `--minutes 60`, which took {longer[0]['took'].removesuffix(' min')} minutes": bleu(
            longer
        ),
        f"sentiment of film reviews, IMDB (English), {option('classifier', 'minutes')} minutes": accuracy("imdb"),
        "the same, NSMC (Korean)": accuracy("nsmc"),
        "pictures of clothes, Fashion-MNIST, 15 minutes": pictures_accuracy(),
        "the same, 60 minutes": f"accuracy {accuracy_of_pictures(60)}",
        f"language model, {option('language_model', 'megabytes')} MB of English reviews, "
        f"{option('language_model', 'minutes')} minutes": f"{bits['Jumok']} bits per byte; xz {bits['xz -9e']}, "
        f"5-gram model {bits['5-gram, Kneser-Ney, our tokens']}",
        f"killed and resumed {kills[1]} times": "same weights as uninterrupted, bit for bit",
        "training `tiny` (4 + 4 layers, Adam), compared with a plain PyTorch loop": speed_up("tiny"),
        "training `base`, compared with the same loop": speed_up("base"),
        "from `jumok translate` to the first sentence; memory while translating a file": f"{start[FIRST]}; "
        f"{start['memory while translating']}",
    }


def option(name: str, option: str) -> str:
    """What the command of a page says."""
    (found,) = set(re.findall(rf"--{option} ([\d.]+)", page(name).split("writes this page")[0]))
    return str(found)


def total_minutes() -> str:
    return row("first_minutes", "in total")["measured"]


def bleu(found: Sequence[Row]) -> str:
    """Of the only training of these files."""
    (row,) = found
    return f"BLEU {row['test BLEU, beam 5'].strip('*')}"


def accuracy(corpus: str) -> str:
    found = row("classifier", corpus)
    ours = found["Jumok"].split("**")[1]
    return f"accuracy {ours}; TF-IDF + logistic regression: {found['scikit-learn'].split(' in ')[0]}"


def accuracy_of_pictures(minutes: int) -> str:
    return row("pictures", f"Jumok, {minutes} minutes")["accuracy"].strip("*")


def pictures_accuracy() -> str:
    others = [found["accuracy"] for found in tables(page("pictures"))[0] if found[""].startswith("scikit-learn")]
    assert len(others) == 3
    return f"accuracy {accuracy_of_pictures(15)}; the best of three classifiers of scikit-learn: {max(others)}"


def speed_up(size: str) -> str:
    cell = row("training_speed", f"`{size}`")["speed-up: median (all rounds)"]
    rounds = re.findall(r"\d\.\d\d", cell.split("(")[1])
    assert f"{statistics.median(map(float, rounds)):.2f}×" in cell
    return f"{cell.split('**')[1].removesuffix('×')} times as fast ({min(rounds)}–{max(rounds)})"


def test_the_first_figure_is_time_to_quality_and_its_sentence_names_the_best_of_the_others() -> None:
    """Beside Jumok on the same kind of processor: the page's first table."""
    first = tables(page("time_to_quality"))[0]
    (ours,) = [row for row in first if row[""] == "Jumok"]
    others = [row for row in first if row[""] != "Jumok"]
    peers = {name.split(",")[0] for name in PEERS.values()} - {"CTranslate2"}  # it cannot train
    assert {row[""].split(",")[0] for row in others} == peers
    columns = ("BLEU after 10 minutes", "BLEU after 20 minutes")
    short, long = (ours[column].strip("*") for column in columns)
    best, best_long = (f"{max(float(row[column]) for row in others if row[column][0].isdigit())}" for column in columns)
    text = " ".join(README.split())
    assert re.findall(r"!\[[^]]*\]\(([^)]*)\)", text)[0] == "benchmarks/time_to_quality.png"
    assert f"after 10 minutes a translator of Jumok's has a BLEU of {short} on the test file" in text
    assert f"after 20 minutes {long}." in text
    assert f"the best has {best} and {best_long} ([" in text


@pytest.mark.parametrize(("title", "expected"), expected_figures().items())
def test_a_figure_is_that_of_its_page(title: str, expected: str) -> None:
    (found,) = [row for row in tables(MEASURED)[0] if row[""] == title]
    assert found["measured"] == expected


MACHINES = {  # in the README: on the pages
    "A": r"AMD EPYC \(avx2\).*2026-11-16|2026-11-16[^.]* on one of 2 cores of an AMD EPYC",
    "B": r"AMD EPYC \(avx2, avx512f\).*2026-11-1[78]",
    "C": r"Intel\(R\) Xeon\(R\) Processor \(avx2, avx512f\).*2026-11-18",
    "D": r"AMD EPYC \(family 26, avx2, avx512f\).*2026-11-19",
}


def test_the_page_of_a_figure_names_the_machine_and_the_day() -> None:
    path = ""
    for found in tables(MEASURED)[0]:
        path = next(iter(re.findall(r"\(([\w/]+\.md)\)", found["page"])), path)
        text = " ".join((ROOT / path).read_text(encoding="utf-8").split())
        assert re.search(MACHINES[found["on"]], text), found[""]


def test_no_row_goes_unchecked() -> None:
    assert len(tables(MEASURED)[0]) == len(expected_figures())


def test_where_jumok_is_slower_is_said_with_the_worst_round() -> None:
    def spread(contender: str, column: str, beams: tuple[str, ...] = ("1", "5")) -> list[tuple[float, float]]:
        rows = [row for row in tables(page("translation_speed"))[0] if row["beam"] in beams]
        cells = [row[column] for row in rows if row["contender"] in contender.split(" / ")]
        return [(float(cell.split()[0]), float(re.findall(r"\(([\d.]+)–", cell)[0])) for cell in cells]

    text = " ".join(MEASURED.split())
    by_hand = spread("CTranslate2 by hand / CTranslate2 by hand, as thorough", "Jumok ÷ it")
    low, high, worst = min(by_hand)[0], max(by_hand)[0], min(worst for _, worst in by_hand)
    assert f"Jumok has {low:.2f} to {high:.2f} of its speed (medians; {worst:.2f} in the worst round)" in text
    fast = spread("jumok --fast", "÷ by hand", ("5",))
    low, high, worst = min(fast)[0], max(fast)[0], min(worst for _, worst in fast)
    assert f"has {low:.2f} to {high:.2f} of that speed ({worst:.2f} in the worst round)" in text
    ((median, worst), _) = spread("CTranslate2 as its README shows", "Jumok ÷ it 7", ("5",))
    assert f"({median:.2f} of its speed, {worst:.2f} in the worst round)" in text
    equal = [row["equal outputs"] for row in tables(page("translation_speed"))[0] if row["contender"] == "jumok --fast"]
    assert f"up to {100 - min(float(share.strip('%')) for share in equal):.1f}% of its translations differ" in text


DOCUMENTS = sorted((ROOT / "docs").rglob("*.md"))


def test_a_figure_that_links_to_a_page_is_on_that_page() -> None:
    links = [
        (path.name, *found)
        for path in DOCUMENTS
        for found in re.findall(r"\[(\d[^]]*)\]\((?:\.\./)+benchmarks/(\w+)\.md\)", path.read_text(encoding="utf-8"))
    ]
    assert len(links) >= 2
    for document, figure, name in links:
        assert figure in page(name), f"{document}: {figure}"


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if path.stem == "before_attention"], ids=["en", "ko"])
def test_the_tables_of_what_came_before_attention_are_those_of_their_page(path: Path) -> None:
    def figures(text: str) -> set[tuple[str, ...]]:
        """The rows of all tables with a column for each network, without the names of the rows."""
        return {tuple(row.values())[1:] for table in tables(text) for row in table if "`rnn`" in row}

    found = figures(path.read_text(encoding="utf-8"))
    assert len(found) >= 10
    assert found <= figures(page("before_attention"))


def names_day_and_commit(text: str) -> bool:
    return re.search(r"\d{4}-\d\d-\d\d,? [a-z ]*commit [0-9a-f]{7}", " ".join(text.split())) is not None


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.md")), ids=lambda path: path.stem)
def test_a_page_names_its_command_and_the_day_and_commit_of_every_table(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.search(r"benchmarks/\w+\.py", text)
    first, *sections = text.split("\n## ")
    assert names_day_and_commit(text)
    assert names_day_and_commit(first) or not tables(first)
    if not names_day_and_commit(re.sub(r"^\|.*\n", "", first, flags=re.MULTILINE)):  # it does not speak for all
        for section in sections:
            assert names_day_and_commit(section) or not tables(section), section.split("\n")[0]
