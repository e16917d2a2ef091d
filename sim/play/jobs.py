"""Sessions in parallel, each a process with its own three parties: through joblib, on this machine or a cluster.

Every session takes the next free trial, so none waits for another at the end. Sessions communicate only through the
run's folder (`sim.runs.trial_queue`): a worker gets the folder's path, and reads the scenario and the run's key there.
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
from sim.games.table import GameTable
from sim.play.faults import Injector
from sim.play.launch import Start
from sim.play.session import play_turns
from sim.runs.folder import RunFolder
from sim.runs.trial_queue import Tray
from sim.runs.trials import Turn, ranges, schedule
from sim.scenarios.sweep import plugins_of

BACKENDS = {"loky": "joblib", "dask": "distributed", "ray": "ray"}
"""The package that each joblib backend needs, by the backend's name; the extra to install has the same name."""

_LOOK_SECONDS = 0.2
_OPEN_SECONDS = 0.02
_PATIENCE_SECONDS = 30.0
"""Seconds without a change of the pulse after which a run's process counts as dead, on whatever machine it ran."""

_LEAVE_SECONDS = 20.0
"""Longest wait, in seconds, for sessions that were asked to leave; a session gives its parties less."""


@dataclass(frozen=True)
class Jobs:
    """The number of sessions in parallel, and their backend, one of ``BACKENDS``."""

    count: int = 1
    backend: str = "loky"

    def require(self) -> None:
        """Raise `JobsRefused` for fewer than one session, or a backend that is unknown or not installed."""
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
"""The default: the run's own process plays alone."""


class JobsRefused(UserError):
    """A backend that is not available, or a bad number of sessions. Its text is one line that names the option."""


class TrialsMissing(RunFailed):
    """Unfinished trials of sessions that have ended. The text names the trials."""


def play_at_once(
    folder: RunFolder,
    turns: Sequence[Turn],
    jobs: Jobs,
    on_trial: Callable[[int], None],
    on_start: Callable[[dict[str, Any]], None],
    programs: Mapping[str, str],
    meanwhile: Callable[[], None],
) -> None:
    """Play trials of a run in parallel sessions, and append each to ``trials.jsonl`` in the order of the schedule.

    The folder already holds the scenario, and all workers reach it by the same path. ``on_trial`` gets the number of
    finished trials; ``on_start``, at the end, gets the confinement of the parties of each session, in the order of the
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
            if jobs.backend == "ray":  # while starting, Ray installs a handler before ours that prints a stack
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
    beats = 0
    while not over.wait(_LOOK_SECONDS):
        tray.beat(beats := beats + 1)


class _Workers(threading.Thread):
    """A thread that waits for joblib, so that an interrupt can end the sessions in order.

    ``over`` is set at the end. Do not use ``join``: it takes the thread for ended if a signal interrupts it (Python
    3.11).
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
        except BaseException as error:  # sessions return their failures; a worker may be interrupted while starting
            self._lost = error
        else:
            self.errors = [error for error in came if error is not None]
        finally:
            self.over.set()

    def epitaph(self) -> str:
        """Return why sessions ended too early without an error of their own."""
        if self._is_started:
            return "a worker was lost" + (f" ({type(self._lost).__name__})" if self._lost is not None else "")
        first, *_ = str(self._lost).splitlines() or [""]
        return f"--backend: {self._jobs.backend} did not start ({type(self._lost).__name__}: {first})"


@contextlib.contextmanager
def _backend(jobs: Jobs) -> Iterator[None]:
    """Make joblib use a backend while the context lasts: on the configured cluster if any, else on this machine."""
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
            # All sessions are over by now, or lost.
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
    """Block Ctrl-C in processes that this thread starts: a terminal signals all, and the run's process ends them.

    The resource tracker is started first: starting it later would lift the block (before Python 3.13).
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
    """Play the listed trials that no other session has taken; this process may be on another machine.

    All sessions share ``numbers``, the trials' numbers in the run. ``runner`` is the process id of the run's process,
    which may be this one's parent; ``job``, from 1, numbers the session and names the parties' logs. Returns the error
    that ended the session, and thereby all sessions; None if there was none, or another session failed first.
    """
    limits = import_module("threadpoolctl")  # comes with scikit-learn, and has no type annotations
    folder, tray = RunFolder(Path(path), run), Tray(Path(path) / tray_name)
    over, table, is_child = threading.Event(), GameTable(), os.getppid() == runner
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
            # Repeat the check's deal while the parties start, before the first trial needs the table.
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
            return None  # a consequence of another session's failure, or of an interrupt
        if not isinstance(error, (RunFailed, UserError, OSError)):
            error.add_note(traceback.format_exc())  # the traceback is lost on the way to another process
        return error
    finally:
        over.set()
        if is_child and os.getppid() != runner:
            os._exit(1)  # the run's process is gone, which joblib's worker would notice only after minutes
    return None


def _watch(tray: Tray, table: GameTable, over: threading.Event, parent: int | None) -> None:
    """End a session when the pulse is gone or stale, or the parent process has died."""
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
