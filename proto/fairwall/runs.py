"""Runs from Python: play a scenario in a process of its own, and read what it left.

The simulator is never imported here: a party's process imports this package too. The process that plays is started with
``-I``, so that no module or folder of the caller's takes the place of one of fairwall's.
"""

from __future__ import annotations

import html
import json
import math
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fairwall.errors import RunFailed, UserError

if TYPE_CHECKING:
    import pandas as pd

Value: TypeAlias = bool | int | float | str
Settings: TypeAlias = Mapping[str, Value | Sequence[Value]]
"""Values by dotted key of the scenario file; a list sweeps the key, but for keys that hold lists by nature."""

_BAD_INPUT = 2
_INTERRUPTED = 130
_FINISHED = re.compile(r"trials (\d+) of (\d+)\n")


class Report(str):
    """The text of a report's page. A notebook shows it as a page."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        # Its styles would be the notebook's too, outside a frame of its own.
        return f'<iframe srcdoc="{html.escape(self)}" style="width: 100%; height: 40rem; border: 0"></iframe>'


@dataclass(frozen=True)
class Plan:
    """What a scenario plays.

    Attributes
    ----------
    scenario : str
        Its name.
    game : str
        Which game it plays.
    about : str
        What it is for.
    cells : tuple of mapping
        The swept values of each cell, by dotted key.
    trials : int
        How many there are in all cells together.
    """

    scenario: str
    game: str
    about: str
    cells: tuple[Mapping[str, Any], ...]
    trials: int


@dataclass(frozen=True)
class Run:
    """A run that was played, read from its folder.

    Attributes
    ----------
    folder : Path
        Absolute.
    plugins : tuple of str
        The files of plug-ins that it was played with, without which nothing of it can be drawn again.
    """

    folder: Path
    plugins: tuple[str, ...] = ()

    @cached_property
    def trials(self) -> list[dict[str, Any]]:
        """The lines of ``trials.jsonl``: what each trial played and came to. Infinity is ``inf``."""
        # A process that was killed may have left half a line behind.
        lines = (self.folder / "trials.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
        return [_numbers(json.loads(line)) for line in lines]

    @cached_property
    def summary(self) -> list[dict[str, Any]]:
        """What the trials of each cell come to."""
        return [_numbers(line) for line in self._result["summary"]]

    @property
    def complete(self) -> bool:
        """Whether every trial was played."""
        return bool(self._result["complete"])

    def frame(self, of: Literal["summary", "trials"] = "summary") -> pd.DataFrame:
        """Give the summary as a frame, one row a cell; or the trials, one row a line of ``trials.jsonl``.

        Raises
        ------
        ImportError
            Without pandas.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("a frame needs pandas: pip install pandas, or take trials and summary") from None
        return pd.DataFrame(self.trials if of == "trials" else self.summary)

    @cached_property
    def figures(self) -> dict[str, str]:
        """What each figure of the report shows, by its name."""
        return dict(_answer_of([*self._report, "--figures=list", "--json"]))

    def figure(self, name: str, kind: str = "pdf", *, out: str | PathLike[str] | None = None) -> Path:
        """Write one of `figures` for a paper, a column or two wide, as ``plt.style.use("fairwall.paper")`` has them.

        Parameters
        ----------
        name : str
            Without its number where no other is called so: ``leakage`` for ``leakage-1``.
        kind : str
            ``pdf``, ``svg`` or ``png``.
        out : str or path, optional
            The folder that gets it; the run's ``figures`` by default.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        fairwall.errors.UserError
            If there is no such figure, or no such kind.
        """
        where = [] if out is None else [f"--out={fspath(out)}"]
        asked = [*self._report, f"--figures={kind}", f"--only={name}", "--json", *where]
        (file,) = _answer_of(asked).values()
        return Path(file)

    def report_html(self) -> Report:
        """Give the report, a page that needs no other file."""
        return Report((self.folder / "report.html").read_text(encoding="utf-8"))

    @property
    def _report(self) -> list[str]:
        return ["report", str(self.folder), *(f"--plugin={file}" for file in self.plugins)]

    @cached_property
    def _result(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "result.json").read_bytes()))


def run(
    scenario: str | PathLike[str],
    *,
    trials: int | None = None,
    seed: int | None = None,
    settings: Settings | None = None,
    out: str | PathLike[str] | None = None,
    jobs: int = 1,
    plugins: Sequence[str | PathLike[str]] = (),
    progress: bool = True,
) -> Run:
    """Play a scenario as ``fairwall run`` does: three processes, a referee, a folder with a report.

    Parameters
    ----------
    scenario : str or path
        A shipped scenario's name, see `scenarios`, or a TOML file.
    trials : int, optional
        How many trials a cell, in place of the scenario's.
    seed : int, optional
        The first trial's seed, in place of the scenario's.
    settings : mapping, optional
        Values by dotted key, as ``--set`` takes them: ``{"compliance.epsilon": [1.0, math.inf]}``; a list sweeps.
    out : str or path, optional
        The folder that gets the run's own folder; ``runs`` by default.
    jobs : int
        How many sessions are played at once.
    plugins : sequence of str or path
        Files of plug-ins that may be named, besides those that are installed.
    progress : bool
        Whether to write to stderr how many trials are finished.

    Raises
    ------
    fairwall.errors.UserError
        For what the caller can mend: an unknown scenario or key, a value that cannot be played, a missing package.
    fairwall.errors.RunFailed
        If the run broke off. The text says who broke it, with the end of that party's log; or what a plug-in did.
    KeyboardInterrupt
        If it was interrupted; a note says how it is resumed.
    """
    base = [(key, value) for key, value in (("trials", trials), ("seed", seed)) if value is not None]
    arguments = [
        "run",
        *_named(scenario, settings),
        *(f"--{key}={value}" for key, value in base),
        *([] if out is None else [f"--out={fspath(out)}"]),
        f"--jobs={jobs}",
        *(f"--plugin={fspath(file)}" for file in plugins),
        "--progress=lines",
        "--json",
    ]
    played = Path(_answer_of(arguments, fspath(scenario) if progress else None)["run_dir"])
    return Run(played, tuple(fspath(Path(file).resolve()) for file in plugins))


def plan_of(scenario: str | PathLike[str], *, settings: Settings | None = None) -> Plan:
    """Tell what `run` would play, and play nothing.

    Parameters
    ----------
    scenario, settings : str or PathLike, Settings or None
        As of `run`.

    Raises
    ------
    fairwall.errors.UserError
        If it cannot be played: the text names the key.
    """
    told = _answer_of(["run", *_named(scenario, settings), "--dry-run", "--json"])
    cells = tuple(_numbers(cell) for cell in told["cells"])
    return Plan(told["scenario"], told["game"], told["about"], cells, told["trials"])


def scenarios() -> dict[str, str]:
    """List the shipped scenarios: what each is for, by name."""
    return {one["name"]: one["about"] for one in _answer_of(["list", "--json"])}


def read_run(folder: str | PathLike[str]) -> Run:
    """Read a run that was played before, here or elsewhere.

    Raises
    ------
    fairwall.errors.UserError
        If the folder is no run's.
    """
    path = Path(folder).resolve()
    missing = [name for name in ("result.json", "trials.jsonl") if not (path / name).is_file()]
    if missing:
        raise UserError(f"{path}: not a run's folder: it has no {' and no '.join(missing)}")
    return Run(path)


def _named(scenario: str | PathLike[str], settings: Settings | None) -> list[str]:
    return [fspath(scenario), *(f"--set={key}={_toml(value)}" for key, value in (settings or {}).items())]


def _toml(value: Any) -> str:
    if isinstance(value, str):
        # Escapes in JSON are escapes in TOML, which has one letter more that must be.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value.item() if hasattr(value, "item") else value)  # numbers of NumPy too; float's inf is TOML's


def _answer_of(arguments: Sequence[str], shown: str | None = None) -> Any:
    """Run a command of ``fairwall`` in a process of its own, and read the JSON that it prints.

    Parameters
    ----------
    shown : str, optional
        What is being played, to write to stderr how far it is.
    """
    with (
        tempfile.TemporaryFile() as printed,
        # In a group of its own Ctrl-C reaches it from here alone: a second one would break off its tidying up.
        subprocess.Popen(  # noqa: S603 - our own interpreter and package
            [sys.executable, "-I", "-m", "sim", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            process_group=0,
        ) as child,
    ):
        said: list[str] = []
        try:
            _listen(child, said, shown)
            status = child.wait()
        except BaseException as error:
            child.send_signal(signal.SIGINT)
            _listen(child, said, None)
            error.add_note("".join(said).strip())
            raise
        text = "".join(said).strip().removeprefix("fairwall: ")
        if status == _BAD_INPUT:
            raise UserError(text)
        if status == _INTERRUPTED:
            raise KeyboardInterrupt(text)
        if status:
            raise RunFailed(text)
        if text:
            print(text, file=sys.stderr)  # noqa: T201 - a warning
        printed.seek(0)
        return json.load(printed)


def _listen(child: subprocess.Popen[str], said: list[str], shown: str | None) -> None:
    """Read what a process says on stderr until it ends, and show how far it is."""
    assert child.stderr is not None
    for line in child.stderr:
        counts = _FINISHED.fullmatch(line)
        if counts is None:
            said.append(line)
        elif shown is not None:
            _show(shown, *map(int, counts.groups()))


def _show(name: str, finished: int, of: int) -> None:
    """Write how far a run is: over the same line again where that can be done, else once a tenth."""
    if sys.stderr.isatty() or "ipykernel" in sys.modules:
        print(f"\r{name}: trial {finished} of {of}", end="\n" if finished == of else "", file=sys.stderr, flush=True)  # noqa: T201
    elif finished * 10 // of > (finished - 1) * 10 // of:
        print(f"{name}: trial {finished} of {of}", file=sys.stderr, flush=True)  # noqa: T201


def _numbers(line: Mapping[str, Any]) -> dict[str, Any]:
    """Read a line's values: JSON has no infinity, and a run's files spell it."""
    return {key: math.inf if value == "inf" else value for key, value in line.items()}
