"""How many steps a training has: a fixed number, or as many as fit into the minutes asked for.

With minutes, the last step is a forecast, changed when the clock shows that it is off. Each change is recorded in
run.json before it takes effect; all else is a function of the step, so a resumed training makes the same updates.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

# A forecast that is off by less is not changed: a share of the time asked for, and one of the time that remains, whose
# speed is known only roughly.
TOLERANCE, TOLERANCE_OF_REST = 0.015, 0.05
CHECK_SHARE = 0.005  # of the time asked for, between two comparisons with the clock
WINDOW_SHARE, WINDOW_STEPS = 0.04, 20  # the speed of now: that of so much of the time, and of so many steps at least …
WINDOW_OF_REST = 0.15  # … and of so much of what remains: a short disturbance says little about a long time
LEAST_STEPS = 3  # before that, nothing is known about the speed
# Of the time asked for, at least so much is not left to validations and export, whose forecast may be far too long
# while the machine is overloaded: a training that ends late is better than one that learns nothing.
LEAST_SHARE = 0.25


class _Segment(NamedTuple):
    """From update `changed` + 1 on, the training ends after update `last`."""

    changed: int
    last: int
    start: int  # where the decay of this segment starts …
    remaining: float  # … and how much of it remains there


class Length:
    """The number of steps, with its changes: pairs of after how many steps it was changed, and the last step then."""

    def __init__(self, changes: Iterable[Sequence[int]], warmup: int) -> None:
        self.warmup = warmup
        self._segments: list[_Segment] = []
        for changed, last in changes:
            self.change(changed, last)

    @property
    def changes(self) -> list[list[int]]:
        """What the constructor takes, ready for JSON."""
        return [[segment.changed, segment.last] for segment in self._segments]

    def change(self, step: int, last: int) -> None:
        """From now on, after `step` updates, the training is to end after update `last`."""
        start = max(step, self.warmup)
        remaining = self.remaining(start) if self._segments else 1.0
        self._segments.append(_Segment(step, max(step, last), start, remaining))

    def last_step(self, step: int) -> int:
        """The last update, as it was known after `step` updates."""
        return self._segment(step).last

    def remaining(self, step: int) -> float:
        """The share of the decay that remains at update `step`: 1 at the end of the warm-up, 0 behind the last one."""
        _, last, start, remaining = self._segment(step - 1)
        if step <= start:
            return remaining
        return remaining * max(0.0, (last + 1 - step) / (last + 1 - start)) if last >= start else 0.0

    def passes(self, step: int, parts: int) -> bool:
        """Whether update `step` ends one of `parts` equal parts of the decay, or the training."""
        if step >= self.last_step(step):
            return True
        return int(parts * (1 - self.remaining(step + 1))) > int(parts * (1 - self.remaining(step)))

    @property
    def last_change(self) -> int:
        """After how many steps the last change was made."""
        return self._segments[-1].changed

    def _segment(self, step: int) -> _Segment:
        for segment in reversed(self._segments):
            if segment.changed <= max(0, step):
                return segment
        return self._segments[0]


class TimeLimit:
    """Forecasts the last step, so that training and all that follows it end after `seconds`.
    `elapsed` gives the seconds used so far, `overhead` forecasts those that will be spent on anything but updates."""

    def __init__(self, seconds: float, elapsed: Callable[[], float], overhead: Callable[[], float]) -> None:
        self.seconds, self._elapsed, self._overhead = seconds, elapsed, overhead
        self._checked = float("-inf")
        self._times: deque[float] = deque()  # of the last updates
        self._sum = 0.0

    def add_step(self, seconds: float) -> None:
        """An update took so long."""
        self._times.append(seconds)
        self._sum += seconds
        window = max(WINDOW_SHARE * self.seconds, WINDOW_OF_REST * (self.seconds - self._elapsed()))
        while len(self._times) > WINDOW_STEPS and self._sum - self._times[0] > window:
            self._sum -= self._times.popleft()

    def add_wait(self, seconds: float) -> None:
        """A card computed the last updates for so much longer."""
        if self._times:
            self._times[-1] += seconds
            self._sum += seconds

    def steps_in_rest(self, each: float) -> int:
        """How many updates of so many seconds fit into the time that remains; 0 if next to none remains."""
        left = self._left()
        return int(left / each) if left > TOLERANCE * self.seconds else 0

    def forecast(self, step: int, last: int) -> int:
        """The last update after `step` of them; `last` itself if that is about right, or was looked at just now."""
        now = self._elapsed()
        if len(self._times) < LEAST_STEPS:
            return max(last, step + LEAST_STEPS)
        is_known = len(self._times) >= WINDOW_STEPS or self._sum >= WINDOW_SHARE * self.seconds
        if step + 1 < last and (not is_known or now - self._checked < CHECK_SHARE * self.seconds):
            return last
        self._checked = now
        each = self._sum / len(self._times)
        left = self._left()
        if abs(left - (last - step) * each) <= TOLERANCE * self.seconds + TOLERANCE_OF_REST * max(0.0, left):
            return last
        return step + max(1, int(left / each))

    def _left(self) -> float:
        """Seconds that remain for updates."""
        return max(self.seconds - self._overhead(), LEAST_SHARE * self.seconds) - self._elapsed()
