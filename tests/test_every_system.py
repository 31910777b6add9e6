"""The core of Jumok by the rules of macOS and of Windows, simulated on Linux: see tests/systems/sitecustomize.py."""

import errno
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import SOURCE, train_arguments, write_corpus

from jumok import system
from jumok.cli.writing import standard_output
from jumok.files import REAL_FILES, WriteError, remove
from jumok.training.records import read_log

TESTS = Path(__file__).parent
STOPPED_BY = {"macos": signal.SIGINT, "windows": signal.SIGUSR1}  # SIGUSR1 stands for Windows' SIGBREAK
SYSTEMS = pytest.mark.parametrize("name", list(STOPPED_BY))

# One process for all of it: importing PyTorch takes longest.
TRAIN_STOP_RESUME_EXPORT = """
import os, sys, threading, time
from pathlib import Path
from jumok.bundle import load_bundle
from jumok.cli.app import run
from jumok.recipes.certifying import certificate
from jumok.training.run_directory import RunDirectory

certificate.LONGEST_PROBE = 100  # the length of texts is not a question of the system
assert not hasattr(os, "sched_getaffinity")  # this is not Linux
out, stop, arguments = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
train = ["train", "translator", *arguments, "-o", str(out), "--quiet"]

def stop_when_it_trains():
    while not (out / "log.jsonl").exists():
        time.sleep(0.01)
    os.kill(os.getpid(), stop)

threading.Thread(target=stop_when_it_trains, daemon=True).start()
assert run([*train, "--steps=5000"]) == 128 + stop
with RunDirectory.open(out, "translator"):
    assert run([*train, "--steps=5000"]) == 2  # in use
assert run([*train, "--steps=40", "--continue-with-changes"]) == 0
assert run(["export", "-m", str(out), "--to", "ctranslate2"]) == 0
loaded = load_bundle(out)
assert run([*train, "--steps=5", "--fresh"]) == 0  # replaces the model that is in use
assert loaded.weights()
assert run(["export", "-m", str(out), "--to", "ctranslate2"]) == 0

together = ["train", "translator", *arguments, "-o", f"{out}-2", "--steps=10", "--processes=2", "--json"]
sys.argv[1:] = together  # what the other process will be started with
print("by two:", flush=True)
assert run(together) == 0
"""

HOLD_A_LOCK = """
import sys
from pathlib import Path
from jumok import system
descriptor = system.open_without_following(Path(sys.argv[1]))
try:
    system.lock_file(descriptor)
except BlockingIOError:
    print("refused")
else:
    print("locked", flush=True)
    sys.stdin.read()
"""


def python_of(name: str, root: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts Python as it would behave on the system of that name."""
    path = os.pathsep.join(map(str, (TESTS / "systems", SOURCE, TESTS, TESTS / "cli")))
    environment = {**os.environ, "PYTHONPATH": path, "JUMOK_TEST_SYSTEM": name, "JUMOK_TEST_ROOT": str(root)}

    def start(*arguments: str | Path, **more: str) -> subprocess.Popen[str]:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        command = [sys.executable, *map(str, arguments)]
        return subprocess.Popen(command, env=environment | more, text=True, encoding="utf-8", cwd=TESTS.parent, **pipes)  # type: ignore[call-overload,no-any-return]

    return start


@pytest.fixture(scope="module", params=list(STOPPED_BY))
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str, str]:
    """The directory of these trainings, the system, and what they printed to both streams."""
    name, directory = request.param, tmp_path_factory.mktemp("system")
    write_corpus(directory)
    arguments = [word for word in train_arguments(directory) if not word.startswith("--steps")][:2]
    settings = [word for word in train_arguments(directory) if word.startswith("--set")]
    command = ["-c", TRAIN_STOP_RESUME_EXPORT, directory / "run", str(int(STOPPED_BY[name])), *arguments, *settings]
    process = python_of(name, directory)(*command, PYTHONWARNDEFAULTENCODING="1")
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return directory, name, out, err


def test_train_stop_resume_export_translate(trained: tuple[Path, str, str, str]) -> None:
    directory, name, _, err = trained
    assert "Traceback" not in err, err
    assert "is in use by process" in err
    assert [entry["event"] for entry in read_log(directory / "run")][-1] == "done"
    translate = ["-m", "jumok", "translate", "-m", directory / "run", "--engine", "ctranslate2"]
    out, err = python_of(name, directory)(*translate).communicate("The small cat sees the dog.\n", timeout=600)
    assert out.count("\n") == 1, err
    assert out.strip(), err


def test_two_processes_train_together(trained: tuple[Path, str, str, str]) -> None:
    directory, _, out, _ = trained
    _, _, printed = out.partition("by two:\n")
    assert [json.loads(line)["event"] for line in printed.splitlines()].count("plan") == 1  # one of the two prints
    assert read_log(directory / "run-2")[-1]["event"] == "done"


@SYSTEMS
def test_a_lock_is_held_until_its_process_is_killed(tmp_path: Path, name: str) -> None:
    python = python_of(name, tmp_path)
    hold = ["-c", HOLD_A_LOCK, tmp_path / "lock"]
    with python(*hold) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "locked\n"
        assert python(*hold).communicate(timeout=600)[0] == "refused\n"
        first.kill()
        first.wait()
    assert python(*hold).communicate(timeout=600)[0] == "locked\n"


def test_a_closed_pipe_ends_a_command_quietly_where_there_is_no_signal_for_it(tmp_path: Path) -> None:
    model = TESTS / "frozen" / "format-1" / "model"
    with python_of("windows", tmp_path)("-m", "jumok", "info", "-m", model) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 128 + signal.SIGPIPE


def test_text_for_a_windows_console_is_not_turned_into_bytes() -> None:
    console = io.TextIOWrapper(io.BufferedWriter(io.BytesIO()), encoding="utf-8")  # type: ignore[arg-type]
    assert standard_output(console) is console
    assert console.errors == "backslashreplace"


# Not those that crash inside a process that lives on with its files open, or start processes by fork, or give a reason
# in Linux's words, or change a file behind the back of a reader that has it in memory; and not a slow one.
OTHER_RULES = "not (crash or kill or damage or cannot_be_locked or changed_in_place or runs_full_at_any)"


LONG = "fails_at_any_operation or power_failure"  # about faults of disks more than about Windows


@pytest.mark.parametrize(
    "selected",
    [
        pytest.param(f"{OTHER_RULES} and not ({LONG})", id="most"),
        pytest.param(f"{OTHER_RULES} and ({LONG})", id="long", marks=pytest.mark.slow),
    ],
)
def test_the_tests_of_files_and_locks_pass_by_the_rules_of_windows(tmp_path: Path, selected: str) -> None:
    root = tmp_path / "root"
    files = ["test_files.py", "test_bundle.py", "data/test_store.py", "training/test_run_directory.py"]
    command = ["-m", "pytest", "-p", "no:cacheprovider", f"--basetemp={root}", "-k", selected]
    process = python_of("windows", root)(*command, *(TESTS / file for file in files))
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0, out[-10_000:]


def test_cores_are_counted_on_every_system(monkeypatch: pytest.MonkeyPatch) -> None:
    assert system.usable_cores() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    monkeypatch.setattr(os, "process_cpu_count", lambda: 5, raising=False)
    assert system.usable_cores() == 5
    monkeypatch.delattr(os, "process_cpu_count")
    assert system.usable_cores() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert system.usable_cores() == 1


V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
HYBRID = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n32 31 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)


@pytest.mark.parametrize(
    ("groups", "mounts", "files", "cores"),
    [
        ("0::/\n", V2, {"cpu.max": "150000 100000\n"}, 2),
        ("0::/\n", V2, {"cpu.max": "max 100000\n"}, 8),
        ("0::/\n", V2, {"cpu.max": "1000 100000\n"}, 1),
        # The quota of a group around this one counts too, here a pod's.
        (
            "0::/pod/app\n",
            V2,
            {"pod/app/cpu.max": "max 100000\n", "pod/cpu.max": "300000 100000\n"},
            3,
        ),
        # Without a namespace of its own, a container sees the name of its group outside, mounted as the root.
        (
            "4:cpu,cpuacct:/docker/abc\n0::/\n",
            "33 31 0:30 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
            {"cpu,cpuacct/cpu.cfs_quota_us": "400000\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n"},
            4,
        ),
        (
            "4:cpu,cpuacct:/\n0::/\n",
            HYBRID + "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
            {"cpu,cpuacct/cpu.cfs_quota_us": "-1\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n"},
            8,
        ),
        ("0::/elsewhere\n", V2.replace(" / ", " /here "), {"cpu.max": "200000 100000\n"}, 2),
        ("0::/\n", V2, {"cpu.max": "nonsense"}, 8),
        ("", "", {}, 8),
    ],
)
def test_no_more_cores_are_used_than_a_containers_quota_allows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, groups: str, mounts: str, files: dict[str, str], cores: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    contents = {"proc/self/cgroup": groups, "proc/self/mountinfo": mounts}
    contents |= {f"sys/fs/cgroup/{name}": content for name, content in files.items()}
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert system.usable_cores(tmp_path) == cores


@pytest.mark.parametrize("error", [TypeError, OSError, AttributeError])
def test_memory_is_left_alone_where_the_c_library_is_another(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def load(_: object) -> object:
        raise error

    monkeypatch.setattr("ctypes.CDLL", load)
    assert not system.keep_freed_memory()


def test_no_link_is_followed_where_the_system_cannot_refuse_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delattr(os, "O_NOFOLLOW")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="link") as raised:
        system.open_without_following(tmp_path / "link")
    assert raised.value.errno == errno.ELOOP
    assert not (tmp_path / "target").exists()


def test_a_file_in_use_for_a_moment_is_waited_for_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def change() -> None:
        tries.append(len(tries))
        if len(tries) < 3:
            raise PermissionError

    with pytest.raises(PermissionError):
        system.retry_while_in_use(change)
    monkeypatch.setattr(system, "WINDOWS", True)
    system.retry_while_in_use(change)
    assert len(tries) == 3


def test_what_stays_in_use_on_windows_is_left_for_the_next_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(_: object) -> None:
        raise PermissionError(errno.EACCES, "in use")

    monkeypatch.setattr("shutil.rmtree", refuse)
    monkeypatch.setattr(system, "_IN_USE_SECONDS", 0.1)
    leftover, other = tmp_path / ".trash-model-1", tmp_path / "model"
    leftover.mkdir()
    other.mkdir()
    with pytest.raises(WriteError, match="cannot be removed"):
        remove(REAL_FILES, leftover)
    monkeypatch.setattr(system, "WINDOWS", True)
    remove(REAL_FILES, leftover)
    with pytest.raises(WriteError, match="cannot be removed"):
        remove(REAL_FILES, other)
