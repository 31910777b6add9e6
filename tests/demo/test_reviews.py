"""The built-in reviews."""

from jumok.demo.reviews import NEGATIVE, POSITIVE, demo_reviews


def test_reviews_are_different_balanced_and_the_same_for_a_seed() -> None:
    reviews = demo_reviews(count=2000)
    assert len({text for _, text in reviews}) == 2000
    assert abs(sum(label == POSITIVE for label, _ in reviews) - 1000) < 150
    assert {label for label, _ in reviews} == {POSITIVE, NEGATIVE}
    assert demo_reviews(count=2000) == reviews
    assert demo_reviews(seed=1, count=2000) != reviews


def test_no_word_decides_by_itself() -> None:
    reviews = demo_reviews(count=4000)
    for word in ("wonderful", "boring", "not", "but", "awful", "lovely"):
        labels = [label for label, text in reviews if word in text]
        share = sum(label == POSITIVE for label in labels) / len(labels)
        assert 0.1 < share < 0.9, word
