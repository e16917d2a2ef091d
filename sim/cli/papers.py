"""The commands ``fairwall papers ...``: papers' claims, and whether the games agree."""

from __future__ import annotations

import contextlib
import json
import math
import textwrap
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairwall.errors import UserError
from sim.cli.common import FAILED, WIDTH, console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sim.papers.claim import ClaimTest, Paper, Prediction
    from sim.papers.claim_ledger import ClaimStatus

app = typer.Typer(
    help="Tell whether papers agree with what is played.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_Folder = Annotated[
    Path | None, typer.Option("--papers", metavar="DIR", help="A folder of your own: a TOML file a paper.")
]


@app.command("list")
def listed(
    paper: Annotated[str | None, typer.Option(help="Only this paper's claims, for example AR.")] = None,
    status: Annotated[str | None, typer.Option(help="Only claims that stand so, for example refuted.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE.md", help="Write them as a page instead, in Markdown.")
    ] = None,
    folder: _Folder = None,
) -> None:
    """List claims, and what became of each."""
    from sim.papers.claim_ledger import STATUSES, entries

    papers = _papers(folder)
    keys = [each.key for each in papers]
    if paper is not None and paper not in keys:
        raise UserError(f"--paper {paper}: there are {', '.join(keys)}")
    if status is not None and status not in STATUSES:
        raise UserError(f"--status {status}: a claim stands as one of {', '.join(STATUSES)}")
    found = [
        each
        for each in entries([each for each in papers if paper in (None, each.key)])
        if status in (None, each.status)
    ]
    if as_json:
        typer.echo(json.dumps({"claims": [_object(each) for each in found]}, allow_nan=False))
        return
    if page is not None:
        from sim.papers.claim_ledger import markdown

        _write(page, "--page", markdown(found))
        typer.echo(f"page: {page}")
        return
    for each in papers:
        own = [entry for entry in found if entry.paper is each]
        if own:
            typer.echo("\n".join([*textwrap.wrap(f"{each.key}: {each.title}", WIDTH), *map(_line, own), ""]))
    typer.echo("\n".join(textwrap.wrap(counted(found), WIDTH)))


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="ID", help="A claim, or a paper: all of its claims.")],
    folder: _Folder = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Also draw the claim's figure, where it has one.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show how a claim is tested and what was measured."""
    from sim.papers.claim import find
    from sim.papers.claim_ledger import entries, entry

    papers = _papers(folder)
    if own := [paper for paper in papers if paper.key == name]:
        found = entries(own)
        shown: Any = {"claims": [_object(each) for each in found]}
    else:
        found = [entry(*find(papers, name))]
        shown = _object(found[0])
    if out is not None:
        _draw(found[0], out)
    typer.echo(json.dumps(shown, allow_nan=False) if as_json else "\n\n".join(map(as_text, found)))


def _draw(entry: ClaimStatus, out: Path) -> None:
    from sim.papers.claim_ledger import function
    from sim.report.drawing import canvas_svg, on_axes

    if entry.claim.figure is None:
        raise UserError(f"--out {out}: {entry.claim.id} has no figure")
    if out.suffix != ".svg":
        raise UserError(f"--out {out}: name a file that ends in .svg")
    _write(out, "--out", canvas_svg(entry.claim.id, on_axes(function(entry.claim.figure))))


def _write(path: Path, option: str, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{option} {path}: cannot be written: {error.strerror}") from None


@app.command()
def run(
    names: Annotated[list[str], typer.Argument(metavar="ID...")],
    data: Annotated[
        list[str] | None, typer.Option(metavar="NAME=FILE", help="A file of yours that a claim needs. May be repeated.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write evidence here, not beside the claims.")] = None,
    dry: Annotated[bool, typer.Option("--dry", help="Only say what it costs.")] = False,
    folder: _Folder = None,
) -> None:
    """Test claims: say what it costs, play, and write the evidence.

    Claims that are measured on the same trials are played once.
    """
    from sim.papers import claim_ledger, play
    from sim.papers.claim import find
    from sim.papers.claim_ledger import to_run

    papers = _papers(folder)
    found = [to_run(*find(papers, name)) for name in names]
    files = {key: Path(path) for key, _, path in (each.partition("=") for each in data or [])}
    for each in found:
        typer.echo("\n".join(textwrap.wrap(f"{each.claim.id}: {play.cost(each)}", WIDTH)))
    if dry:
        return
    for each in found:
        if each.claim.test is not None:
            play.require(each.claim.test, files)
    played: dict[str, play.Measured] = {}
    for each in found:
        test = each.claim.test
        assert test is not None, "its cost was said"
        if test.check is not None:
            made = play.checked(each.claim, files)
        else:
            place = json.dumps(
                [test.play or test.table or test.measure, test.set, test.trials, test.seed, test.data], default=str
            )
            if place not in played:
                with _progress(test, files) as update:
                    played[place] = play.measure(test, files, update)
            made = play.evidence(each.claim, played[place])
        path = claim_ledger.write(out or each.paper.evidence, made)
        before = "" if each.evidence is None else f", recorded as {each.evidence.verdict}"
        typer.echo(f"{each.claim.id}: {made.verdict}{before}\nwritten: {path}")


@app.command()
def check(folder: _Folder = None) -> None:
    """Compute all verdicts again, and execute all checks. Status 1: one differs from what is recorded."""
    from sim.papers.claim_ledger import entries, faults

    papers = _papers(folder, needed=True)
    found = list(faults(papers))
    for fault in found:
        typer.echo("\n".join(textwrap.wrap(fault, WIDTH, subsequent_indent="  ")))
    if found:
        differ = "1 claim differs" if len(found) == 1 else f"{len(found)} claims differ"
        typer.echo(f"{differ} from what is recorded")
        raise typer.Exit(FAILED)
    typer.echo("\n".join(textwrap.wrap(f"All verdicts follow from their evidence. {counted(entries(papers))}", WIDTH)))


@app.command()
def compare(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Runs' folders, and published figures: CSV, a row a seed.", metavar="RUN... FILE"),
    ],
    everything: Annotated[bool, typer.Option("--all", help="Show every comparison, not only what differs.")] = False,
    page: Annotated[
        Path | None, typer.Option(help="Also write a page with figures to this file.", metavar="HTML")
    ] = None,
) -> None:
    """Hold a run, or several together, against published figures. Status 1: they differ."""
    *folders, file = paths
    if not folders:
        raise UserError("RUN... FILE: give the folder of a run at least, and then the file of published figures")

    from sim.papers import compared
    from sim.papers.compare import compare, run_of
    from sim.runs.page import compared_page

    runs = [run_of(folder) for folder in folders]
    sweeps = [sweep for sweep, _ in runs]
    try:
        held = compare(runs, file)
        text = None
        if page is not None:
            together = list(zip(folders, runs, strict=True))
            text = compared_page(together, file, compared.page(sweeps, held, file.name))
        shown = compared.terminal(sweeps, held, everything=everything)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        where = ", ".join(map(str, folders))
        raise UserError(f"{where}: trials.jsonl is not as a run of its scenario writes it") from error
    if page is not None and text is not None:
        _write(page, "--page", text)
    console(WIDTH).print(shown)
    if page is not None:
        typer.echo(f"page: {page}")
    if not held.well:
        raise typer.Exit(FAILED)


@contextlib.contextmanager
def _progress(test: ClaimTest, files: Mapping[str, Path]) -> Iterator[Callable[[int], None]]:
    if test.play is None:
        yield lambda _: None
        return
    from sim.cli.run import progress
    from sim.papers.play import scenario
    from sim.runs.trials import WHOLE

    with progress(scenario(test, files), WHOLE, transient=True) as update:
        yield update


def as_text(entry: ClaimStatus) -> str:
    """Return a claim laid out in 80 columns."""
    from sim.papers import play
    from sim.papers.claim_ledger import MEANING, measured, number, predicted

    claim, found = entry.claim, entry.evidence
    rows = [("claim", claim.says), ("status", f"{entry.status}: {MEANING[entry.status]}")]
    if claim.missing:
        rows.append(("missing", claim.missing))
    if claim.test is not None:
        rows.append(("test", play.cost(entry)))
    if found is not None and claim.test is not None:
        rows += [("found", found.found), ("against it", found.counterexample)]
        for place, (prediction, ours) in enumerate(
            zip(claim.test.predicts, measured(claim.test, found.values), strict=True)
        ):
            many = "" if claim.test.exact else f", {len(found.values[place])} units by {claim.test.unit}"
            says = f"{number(ours, exact=claim.test.exact)}{many}; {predicted(prediction)}"
            rows.append(("value", f"{_kinds(prediction)}: {says}"))
        rows.append(("measured", _how(found.code, found.source, found.data)))
    if claim.note:
        rows.append(("note", claim.note))
    if claim.test is not None:
        rows.append(("again", f"fairwall papers run {claim.id}"))
    head = textwrap.wrap(f"{claim.id}, {claim.kind}: {entry.paper.title}, {claim.where}", WIDTH)
    return "\n".join([*head, *(line for label, text in rows if text for line in _wrapped(label, text))])


def counted(entries: Sequence[ClaimStatus]) -> str:
    """Return the number of claims with each status, in words."""
    from sim.papers.claim_ledger import STATUSES

    many = Counter(each.status for each in entries)
    return f"{len(entries)} claims: {', '.join(f'{many[each]} {each}' for each in STATUSES if many[each])}."


def _papers(folder: Path | None, *, needed: bool = False) -> tuple[Paper, ...]:
    """Read papers. Where ours came without their evidence, print so, or refuse a command that needs it."""
    from sim.papers.claim import SHIPPED, papers

    found = papers(folder or SHIPPED)
    if folder is None and not any(paper.evidence.is_dir() for paper in found):
        lacking = "evidence is in the repository and not in this install; `fairwall papers run` measures a claim again"
        if needed:
            raise UserError(lacking)
        typer.echo(lacking, err=True)
    return found


def _line(entry: ClaimStatus) -> str:
    head = f"{entry.claim.id:8}{entry.status:16}"
    return "\n".join(textwrap.wrap(entry.claim.says, WIDTH, initial_indent=head, subsequent_indent=" " * len(head)))


def _wrapped(label: str, text: str) -> list[str]:
    return textwrap.wrap(f"  {label:12}{text}", WIDTH, subsequent_indent=" " * 14, break_on_hyphens=False)


def _kinds(prediction: Prediction) -> str:
    """Return a value's formula, and the lines that it uses."""
    kinds = prediction.measured.kinds
    named = [f"{f'{name}: ' if name else ''}{_settings(keys)}" for name, keys in kinds.items() if keys]
    return f"{prediction.value}{f' [{chr(59).join(named)}]' if named else ''}".replace(";", "; ")


def _how(code: str, source: Mapping[str, Any], data: Mapping[str, str]) -> str:
    told = [
        f"fairwall {code}",
        *(f"{key} {source[key]}" for key in ("play", "table", "measure", "check") if key in source),
    ]
    told += [_settings(source["set"])] if source.get("set") else []
    told += [f"{key} {source[key]}" for key in ("trials", "seed") if key in source]
    return "; ".join([*told, *(f"{name} {digest[:12]}" for name, digest in data.items())])


def _settings(settings: Mapping[str, Any]) -> str:
    def text(value: Any) -> str:
        return " or ".join(map(text, value)) if isinstance(value, list | tuple) else str(value)

    return ", ".join(f"{key} {text(value)}" for key, value in settings.items())


def _object(entry: ClaimStatus) -> dict[str, Any]:
    claim, found = entry.claim, entry.evidence
    values = claim.model_dump(mode="json", exclude={"test", "status"}, exclude_none=True)
    values |= {"paper": entry.paper.key, "status": entry.status}
    if claim.test is not None:
        values["test"] = claim.test.model_dump(mode="json", exclude_defaults=True)
    if found is not None:
        values["evidence"] = json.loads(found.text())
    return {key: _plain(value) for key, value in values.items()}


def _plain(value: Any) -> Any:
    """Return a value with infinite numbers written as files and results write them."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
