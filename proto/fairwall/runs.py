"""Runs from Python: play a scenario in a separate process, and read the run's folder.

The simulator is never imported here, because a party's process imports this package too. The separate process starts
with ``-I``, so that no module or folder of the caller's replaces one of fairwall's.
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
"""Values by dotted key of the scenario file. A list sweeps its key, except keys whose value is a list."""

_BAD_INPUT = 2
_INTERRUPTED = 130
_FINISHED = re.compile(r"trials (\d+) of (\d+)\n")


class Report(str):
    """The HTML of a report. A notebook shows it as a page."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        # Outside a frame, the report's styles would apply to the notebook too.
        return f'<iframe srcdoc="{html.escape(self)}" style="width: 100%; height: 40rem; border: 0"></iframe>'


@dataclass(frozen=True)
class Plan:
    """The cells and trials of a scenario, before it is played.

    Attributes
    ----------
    scenario, game, about : str
        The scenario's name, its game's, and its purpose.
    cells : tuple of mapping
        The swept values of each cell, by dotted key.
    trials : int
        Number of trials in all cells together.
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
        Absolute path.
    plugins : tuple of str
        Files of the plug-ins that were played, needed to draw the run's figures again.
    """

    folder: Path
    plugins: tuple[str, ...] = ()

    @cached_property
    def trials(self) -> list[dict[str, Any]]:
        """The lines of ``trials.jsonl``: the setting and outcome of each trial. Infinity is ``inf``."""
        # A killed process may have left half a line behind.
        lines = (self.folder / "trials.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
        return [_numbers(json.loads(line)) for line in lines]

    @cached_property
    def summary(self) -> list[dict[str, Any]]:
        """The summary of each cell's trials."""
        return [_numbers(line) for line in self._result["summary"]]

    @property
    def complete(self) -> bool:
        """Whether every trial was played."""
        return bool(self._result["complete"])

    def frame(self, of: Literal["summary", "trials"] = "summary") -> pd.DataFrame:
        """Return the summary as a frame, one row a cell; or the trials, one row each. ImportError without pandas."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("a frame needs pandas: pip install pandas, or take trials and summary") from None
        return pd.DataFrame(self.trials if of == "trials" else self.summary)

    @cached_property
    def figures(self) -> dict[str, str]:
        """The content of each figure of the report, by the figure's name."""
        return dict(_answer_of([*self._report, "--figures=list", "--json"]))

    def figure(self, name: str, kind: str = "pdf", *, out: str | PathLike[str] | None = None) -> Path:
        """Write one of `figures` for a paper, one or two columns wide, as ``plt.style.use("fairwall.paper")`` has it.

        Parameters
        ----------
        name : str
            The number may be left out if the name is unique without it: ``leakage`` for ``leakage-1``.
        kind : str
            ``pdf``, ``svg`` or ``png``.
        out : str or path, optional
            Destination folder; the run's ``figures`` by default.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        fairwall.errors.UserError
            If there is no such figure or kind.
        """
        where = [] if out is None else [f"--out={fspath(out)}"]
        asked = [*self._report, f"--figures={kind}", f"--only={name}", "--json", *where]
        (file,) = _answer_of(asked).values()
        return Path(file)

    def report_html(self) -> Report:
        """Return the report, a page that needs no other file."""
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
    """Play a scenario as ``fairwall run`` does: a referee and three party processes, and a folder with a report.

    Parameters
    ----------
    scenario : str or path
        A shipped scenario's name, see `scenarios`, or a TOML file.
    trials : int, optional
        Trials per cell, in place of the scenario's.
    seed : int, optional
        The first trial's seed, in place of the scenario's.
    settings : mapping, optional
        Values by dotted key, as for ``--set``: ``{"compliance.epsilon": [1.0, math.inf]}``; a list sweeps its key.
    out : str or path, optional
        Parent of the run's folder; ``runs`` by default.
    jobs : int
        Number of sessions played at once.
    plugins : sequence of str or path
        Files of plug-ins that the scenario may name, besides the installed ones.
    progress : bool
        Whether to write the number of finished trials to stderr.

    Raises
    ------
    fairwall.errors.UserError
        If the caller can fix it: an unknown scenario or key, a value that cannot be played, a missing package.
    fairwall.errors.RunFailed
        If the run broke off. The text names the party at fault, with the end of its log; or the plug-in's error.
    KeyboardInterrupt
        If it was interrupted; a note says how to resume the run.
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
    """Return the plan that `run` would play for a scenario and settings, without playing it.

    Raises
    ------
    fairwall.errors.UserError
        If the scenario cannot be played; the text names the key.
    """
    told = _answer_of(["run", *_named(scenario, settings), "--dry-run", "--json"])
    cells = tuple(_numbers(cell) for cell in told["cells"])
    return Plan(told["scenario"], told["game"], told["about"], cells, told["trials"])


def scenarios() -> dict[str, str]:
    """Return the purpose of each shipped scenario, by name."""
    return {one["name"]: one["about"] for one in _answer_of(["list", "--json"])}


def read_run(folder: str | PathLike[str]) -> Run:
    """Read a run that was played before, here or elsewhere.

    Raises
    ------
    fairwall.errors.UserError
        If the folder is not a run's.
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
        # JSON's escapes are TOML's too, and TOML must escape one more character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value.item() if hasattr(value, "item") else value)  # numbers of NumPy too; float's inf is TOML's


def _answer_of(arguments: Sequence[str], scenario: str | None = None) -> Any:
    """Return the JSON that a ``fairwall`` command prints; show progress on stderr under a scenario's name, if given."""
    with (
        tempfile.TemporaryFile() as printed,
        # In its own process group, Ctrl-C reaches it from here alone: a second signal would interrupt its clean-up.
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
        errors: list[str] = []
        try:
            _listen(child, errors, scenario)
            status = child.wait()
        except BaseException as error:
            child.send_signal(signal.SIGINT)
            _listen(child, errors, None)
            error.add_note("".join(errors).strip())
            raise
        text = "".join(errors).strip().removeprefix("fairwall: ")
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


def _listen(child: subprocess.Popen[str], errors: list[str], scenario: str | None) -> None:
    """Collect the lines that a process writes to stderr until it ends, and show its progress."""
    assert child.stderr is not None
    for line in child.stderr:
        counts = _FINISHED.fullmatch(line)
        if counts is None:
            errors.append(line)
        elif scenario is not None:
            _show(scenario, *map(int, counts.groups()))


def _show(name: str, finished: int, of: int) -> None:
    """Write a run's progress: over the same line on a terminal or in a notebook, else once a tenth."""
    if sys.stderr.isatty() or "ipykernel" in sys.modules:
        print(f"\r{name}: trial {finished} of {of}", end="\n" if finished == of else "", file=sys.stderr, flush=True)  # noqa: T201
    elif finished * 10 // of > (finished - 1) * 10 // of:
        print(f"{name}: trial {finished} of {of}", file=sys.stderr, flush=True)  # noqa: T201


def _numbers(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with "inf" read as infinity, which JSON does not have."""
    return {key: math.inf if value == "inf" else value for key, value in line.items()}
