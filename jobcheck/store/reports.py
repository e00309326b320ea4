"""`report.json`: the public, versioned result of a run (docs/report-format.md)."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from jobcheck.errors import UsageError
from jobcheck.history.codec import from_json
from jobcheck.history.report import FORMAT, Report

from .files import write_whole
from .folder import REPORT


def report_text(report: Report) -> str:
    """The report as JSON text. Every key is there, defaults included: a reader need not know them."""
    return json.dumps(dataclasses.asdict(report), ensure_ascii=False, indent=1, default=str) + "\n"


def write_report(path: Path, report: Report) -> Path:
    """Writes `report.json`, given its path or its run folder. Raises UsageError or Aborted when the disk refuses."""
    return write_whole(path / REPORT if path.is_dir() else path, report_text(report))


def read_report(path: Path) -> Report:
    """Reads `report.json`, given its path or its run folder. Unknown keys are ignored.

    Raises UsageError when it is missing, no report, or of a format newer than this program.
    """
    file = path / REPORT if path.is_dir() else path
    try:
        data = json.loads(file.read_bytes())
    except OSError as error:
        raise UsageError(
            f"cannot read the report {file}: {error.strerror}", hint="name a run folder under reports/"
        ) from error
    except ValueError as error:
        raise UsageError(f"{file} is no JSON: {error}") from error
    if isinstance(data, dict) and isinstance(data.get("format"), int) and data["format"] > FORMAT:
        raise UsageError(
            f"{file} has format {data['format']}, this jobcheck reads up to {FORMAT}", hint="install a newer jobcheck"
        )
    try:
        return from_json(Report, data)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise UsageError(f"{file} is no jobcheck report: {error}") from error
