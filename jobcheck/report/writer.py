"""Writes all files of a finished run, and its summary where GitHub wants it."""

from __future__ import annotations

from pathlib import Path

from jobcheck.history.report import Report
from jobcheck.store.files import refused, write_whole
from jobcheck.store.folder import RunFolder
from jobcheck.store.reports import write_report

from .html import html
from .junit import junit
from .summary import summary

MOST_BYTES = 1024 * 1024
"""What GitHub shows of one step."""


def write_all(report: Report, folder: RunFolder, *, fail_transport: bool = False, fail_on: str = "settings") -> Path:
    """Writes report.json, junit.xml, report.html and summary.md, makes `latest` name the run, returns the HTML's path.

    `fail_transport`: transport findings are failures in JUnit too (`--fail-on all`); `fail_on` is the same for
    scenarios. Raises UsageError or Aborted when the disk refuses.
    """
    write_report(folder.report, report)
    write_whole(folder.junit, junit(report, fail_transport=fail_transport, fail_on=fail_on))
    write_whole(folder.summary, summary(report))
    write_whole(folder.html, html(report))
    folder.finish()
    return folder.html


def append_summary(report: Report, path: Path) -> None:
    """Puts the summary behind what the file of a GitHub step (`GITHUB_STEP_SUMMARY`) holds already.

    GitHub drops a step's whole summary when it is above 1 MiB: where ours would be too much, it is one line. Raises
    UsageError or Aborted when the file cannot be written.
    """
    text = summary(report)
    try:
        size = path.stat().st_size if path.exists() else 0
        if size + len(text.encode("utf-8", "backslashreplace")) > MOST_BYTES:
            text = f"{text.partition(chr(10))[0]} (this step's summary is full; the rest is in the report)\n"
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise refused(path, error) from error
