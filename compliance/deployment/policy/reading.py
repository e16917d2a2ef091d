"""Reads a policy from its TOML file: the data, the answers, the budget, and the developers admitted."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from compliance.deployment.policy.checks import check_names, check_released, first, problems, unfit_texts
from compliance.deployment.policy.schema import DeploymentSection, Policies, Policy, PolicyError
from fairwall import toml
from fairwall.files import require_end
from fairwall.rpc.addresses import mistake


def read(path: Path, listen: str | None = None) -> Policies:
    """Read a policy; `listen` replaces the file's address where several services share one file.

    PolicyError with one line that names the file, the key and what is wrong.
    """
    try:
        require_end(path)
        policies = parse(toml.content(path), path)
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read: {error.strerror}") from None
    except toml.TomlError as error:
        raise PolicyError(f"{path}: not valid TOML: {error}") from None
    return policies if listen is None else _elsewhere(policies, listen)


def _elsewhere(policies: Policies, listen: str) -> Policies:
    try:
        place = DeploymentSection.model_validate(dict(policies.deployment) | {"listen": listen}, context=Path())
    except ValidationError:
        raise PolicyError(f"--listen: must be host:port{mistake(listen)}, not {listen}") from None
    return replace(policies, deployment=place)


def parse(content: bytes, path: Path) -> Policies:
    """Read a policy from the text of a file, which need not exist yet; PolicyError as `read`."""
    try:
        values = toml.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise PolicyError(f"{path}: cannot be read: not UTF-8 text") from None
    except toml.TomlError as error:
        raise PolicyError(f"{path}: not valid TOML: {error}") from None
    several = "datasets" in values
    try:
        if problem := next(unfit_texts(values), ""):
            raise PolicyError(problem)
        parts = _by_dataset(values) if several else {"": values}
        policies = [_policy(part, path.parent, f"datasets.{name}." * several) for name, part in parts.items()]
        check_names(policies)
        check_released(policies)
    except PolicyError as error:
        raise PolicyError(f"{path}: {error}") from None
    datasets = {policy.data_name: policy for policy in policies}
    return Policies(policies[0].deployment, datasets, hashlib.sha256(content).digest(), several)


def _by_dataset(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return, for each of several data sets, the sections it would have alone."""
    sections = values["datasets"]
    for key in values.keys() - {"deployment", "datasets"}:
        raise PolicyError(f"{key}: belongs to one data set: name it datasets.NAME.{key}")
    if not isinstance(sections, dict) or not sections:
        raise PolicyError("datasets: must have a table for each data set")
    parts = {}
    for name, section in sections.items():
        if not isinstance(section, dict):
            raise PolicyError(f"datasets.{name}: must be a table")
        data = section.get("data")
        if isinstance(data, dict):
            if "name" in data:
                raise PolicyError(f"datasets.{name}.data.name: leave it out: the data set is called {name}")
            section = section | {"data": data | {"name": name}}
        if "deployment" in section:
            raise PolicyError(f"datasets.{name}.deployment: there is one for all data sets")
        parts[name] = section | ({"deployment": values["deployment"]} if "deployment" in values else {})
    return parts


def _policy(values: dict[str, Any], folder: Path, prefix: str) -> Policy:
    """Validate one data set's part; errors begin with the prefix, except for the deployment's keys."""
    try:
        policy = Policy.model_validate(values, context=folder)
        problem = next(problems(policy), "")
    except ValidationError as error:
        problem = first(error)
    if problem:
        raise PolicyError(problem if problem.startswith("deployment") else prefix + problem)
    return policy
