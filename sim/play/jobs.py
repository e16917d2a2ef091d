"""Sessions played at once, each in a process and with three parties of its own: through joblib, here or on a cluster.

Every session takes the next trial that nobody has taken, so none waits for another at the end. They meet in the run's
folder alone (`sim.runs.tray`): a worker is told where that is, and reads the scenario and the run's key there.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing.resource_tracker
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from fairwall import plugins
from fairwall.errors import RunFailed, UserError
from sim.games import GAMES, read
from sim.games.cards import WRITTEN_DOWN
from sim.games.table import Table
from sim.play.faults import Injector
from sim.play.launch import Start
from sim.play.session import play_turns
from sim.runs.folder import RunFolder
from sim.runs.tray import Tray
from sim.runs.trials import Turn, ranges, schedule
from sim.scenarios.sweep import plugins_of

BACKENDS = {"loky": "joblib", "dask": "distributed", "ray": "ray"}
"""What plays sessions at once, by joblib's name for it, and the package that it needs: the extra of the same name."""

_LOOK_SECONDS = 0.2
_OPEN_SECONDS = 0.02
_PATIENCE_SECONDS = 30.0
"""A run's process that has shown no pulse for so long is gone, wherever it was."""

_LEAVE_SECONDS = 20.0
"""How long sessions that are told to leave are waited for; each gives its parties less."""


@dataclass(frozen=True)
class Jobs:
    """How many sessions are played at once, and through which of ``BACKENDS``."""

    count: int = 1
    backend: str = "loky"

    def require(self) -> None:
        """Refuse, by `JobsRefused`, a backend that is unknown or not installed."""
        if self.count < 1:
            raise JobsRefused(f"--jobs: {self.count}: at least 1 session is played at once")
        if self.backend not in BACKENDS:
            raise JobsRefused(f"--backend: {self.backend!r} is none of {', '.join(BACKENDS)}")
        package = BACKENDS[self.backend]
        if find_spec(package) is None:
            extra = "games" if self.backend == "loky" else self.backend
            raise JobsRefused(
                f"--backend: {self.backend} needs {package}, which is not installed: pip install 'fairwall[{extra}]'"
            )


ONE = Jobs()
"""The run's own process plays, alone."""


class JobsRefused(UserError):
    """A way to play at once that is not there. Its text is one line that names the option."""


class TrialsMissing(RunFailed):
    """Sessions that ended with trials unfinished, which its text names."""


def play_at_once(
    folder: RunFolder,
    turns: Sequence[Turn],
    jobs: Jobs,
    on_trial: Callable[[int], None],
    on_start: Callable[[dict[str, Any]], None],
    programs: Mapping[str, str],
    meanwhile: Callable[[], None],
) -> None:
    """Play some of a run's trials in several sessions, and write each into ``trials.jsonl`` when it is its turn.

    The folder holds the scenario by now, and all workers reach it by the same path. ``on_trial`` is told how many
    trials are finished; ``on_start``, at the end, what confined the parties of each session, in the order of their
    transcripts. ``programs`` and ``meanwhile`` are as in `Start`.
    """
    tray = Tray.new(folder.path)
    numbers = [number for _, _, number in turns]
    used = plugins_of(read(str(folder.path / "scenario.toml")))
    task = (str(folder.path), folder.run, tray.path.name, numbers, dict(programs), plugins.told(used), os.getpid())
    workers = _Workers([(*task, job) for job in range(1, min(jobs.count, len(turns)) + 1)], jobs)
    waiting, collected = iter(numbers), 0
    due = next(waiting, None)

    def collect() -> None:
        nonlocal due, collected
        there = tray.finished()
        on_trial(collected + len(there))
        while due is not None and due in there:
            folder.add_trial(*tray.lines(due))
            tray.drop(due)
            collected += 1
            due = next(waiting, None)

    workers.start()
    threading.Thread(target=_beat, args=(tray, workers.over), daemon=True).start()
    try:
        meanwhile()
        tray.open()
        while not workers.over.wait(_LOOK_SECONDS):
            collect()
            if jobs.backend == "ray":  # as it starts, Ray puts a handler before ours, that prints a stack
                signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))
    finally:
        tray.end()
        workers.over.wait(_LEAVE_SECONDS)
        if tray.is_open():
            collect()
        for layers in tray.starts():
            on_start(layers)
    for error in workers.errors:
        raise error
    failed = [failure["cell"] for failure in folder.failures()]
    missing = sorted(
        {number for cell, _, number in turns if dict(cell.swept) not in failed}
        - {*numbers[:collected], *tray.finished()}
    )
    if missing:
        raise TrialsMissing(
            f"{workers.epitaph()}: {len(missing)} of {len(numbers)} trials are missing: {ranges(missing)}; "
            f"what is finished is kept, and --resume {folder.path} plays them"
        )


def _beat(tray: Tray, over: threading.Event) -> None:
    """Keep a tray's pulse going, whatever else the run's process does."""
    beats = 0
    while not over.wait(_LOOK_SECONDS):
        tray.beat(beats := beats + 1)


class _Workers(threading.Thread):
    """Waits for joblib in a thread of its own, so that an interrupt can end the sessions in order.

    ``over`` is set at the end; not ``join``, which takes the thread for ended if a signal interrupts it (Python 3.11).
    """

    def __init__(self, tasks: Sequence[tuple[Any, ...]], jobs: Jobs) -> None:
        super().__init__(daemon=True)
        self._tasks = tasks
        self._jobs = jobs
        self.errors: list[Exception] = []
        self._lost: BaseException | None = None
        self._is_started = False
        self.over = threading.Event()

    def run(self) -> None:
        """Play all sessions to their end."""
        import joblib

        try:
            with _backend(self._jobs):
                self._is_started = True
                parallel = joblib.Parallel(n_jobs=self._jobs.count, batch_size=1, pre_dispatch="all")
                came = parallel(joblib.delayed(play_session)(*task) for task in self._tasks)
        except BaseException as error:  # sessions return what they fail with; a worker may be interrupted as it starts
            self._lost = error
        else:
            self.errors = [error for error in came if error is not None]
        finally:
            self.over.set()

    def epitaph(self) -> str:
        """Tell why sessions ended that finished too little, and failed with nothing."""
        if self._is_started:
            return "a worker was lost" + (f" ({type(self._lost).__name__})" if self._lost is not None else "")
        first, *_ = str(self._lost).splitlines() or [""]
        return f"--backend: {self._jobs.backend} did not start ({type(self._lost).__name__}: {first})"


@contextlib.contextmanager
def _backend(jobs: Jobs) -> Iterator[None]:
    """Have joblib play through a backend while the context lasts: on the cluster it is configured for, or else here."""
    import joblib

    if jobs.backend == "loky":
        from joblib.externals.loky import get_reusable_executor
        from joblib.externals.loky.backend import resource_tracker

        resource_tracker.ensure_running()
        _leave_interrupts()
        try:
            with joblib.parallel_config("loky"):
                yield
        finally:
            # Sessions are over by now, or lost.
            get_reusable_executor(kill_workers=True).shutdown(wait=True)
    elif jobs.backend == "dask":
        dask, distributed = import_module("dask"), import_module("distributed")
        _leave_interrupts()
        address = dask.config.get("scheduler-address", None)
        own: dict[str, Any] = {
            "n_workers": jobs.count,
            "threads_per_worker": 1,
            "dashboard_address": None,
            "silence_logs": "ERROR",
        }
        with (
            distributed.Client(address) if address else distributed.Client(**own) as client,
            joblib.parallel_config("dask", client=client),
        ):
            yield
    else:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray = import_module("ray")
        own = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": jobs.count, "include_dashboard": False}
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **own)
        try:
            import_module("ray.util.joblib").register_ray()
            with joblib.parallel_config("ray"):
                yield
        finally:
            ray.shutdown()


def _leave_interrupts() -> None:
    """Keep Ctrl-C from what this thread will start: a terminal tells all its processes, and the run's own ends them.

    The process that keeps track of what workers share is started first: that lifts the block (before Python 3.13).
    """
    multiprocessing.resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def play_session(
    path: str,
    run: str,
    tray_name: str,
    numbers: Sequence[int],
    programs: Mapping[str, str],
    used: str,
    runner: int,
    job: int,
) -> Exception | None:
    """Play in this process, which may be on another machine, trials that no other session has taken.

    All sessions together play the trials that are numbered so in the run. The run's process, the ``runner``, may be
    this one's parent; ``job`` says which of the sessions this is, from 1, and names the parties' logs. What is given is
    what ended the session, and with it all the others; None where all is well, or another had ended it.
    """
    limits = import_module("threadpoolctl")  # which joblib's users have, and which says nothing of its types
    folder, tray = RunFolder(Path(path), run), Tray(Path(path) / tray_name)
    over, table, is_child = threading.Event(), Table(), os.getppid() == runner
    threading.Thread(target=_watch, args=(tray, table, over, runner if is_child else None), daemon=True).start()
    try:
        plugins.offer(others=[each for each in plugins.read(used) if each.text])
        sweep = read(str(folder.path / "scenario.toml"))
        wanted = {*numbers}

        def taken() -> Iterator[Turn]:
            for turn in schedule(sweep):
                if turn[2] in wanted and tray.pulse() is not None and tray.take(turn[2]):
                    yield turn

        turns = taken()
        first = next(turns, None)
        if first is None:
            return None

        def ready() -> None:
            # As the check did to find the data well: while parties start, and before the first trial needs the table.
            GAMES[sweep.game].deal(first[0], first[1], "check", WRITTEN_DOWN)
            while not tray.is_open():
                if over.wait(_OPEN_SECONDS) or tray.pulse() is None:
                    raise RunFailed("the run was ended")

        with (
            limits.threadpool_limits(1),
            Injector(folder) if sweep.scenario.faults else contextlib.nullcontext() as injector,
        ):
            play_turns(
                sweep,
                folder,
                chain([first], turns),
                lambda _: None,
                tray.start,
                injector,
                Start(programs, meanwhile=ready, log_suffix=f".{job}"),
                table,
                tray.lay,
            )
    except Exception as error:
        if not tray.end():
            return None  # it follows from what ended another session, or from an interrupt
        if not isinstance(error, (RunFailed, UserError, OSError)):
            error.add_note(traceback.format_exc())  # which is lost on the way to another process
        return error
    finally:
        over.set()
        if is_child and os.getppid() != runner:
            os._exit(1)  # nobody is left to work for, which joblib's worker would notice in minutes only
    return None


def _watch(tray: Tray, table: Table, over: threading.Event, parent: int | None) -> None:
    """End a session when the pulse is gone or, because its process is, does not change any more."""
    seen, since = tray.pulse(), time.monotonic()
    while not over.wait(_LOOK_SECONDS):
        pulse = tray.pulse()
        if pulse != seen:
            seen, since = pulse, time.monotonic()
        is_gone = time.monotonic() - since > _PATIENCE_SECONDS or parent not in (None, os.getppid())
        if is_gone:
            tray.end()
        if pulse is None or is_gone:
            table.abort("the run was ended")
            return
