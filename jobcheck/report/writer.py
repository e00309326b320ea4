"""Writes all files of a finished run."""

from __future__ import annotations

from pathlib import Path

from jobcheck.history.report import Report
from jobcheck.store.files import write_whole
from jobcheck.store.folder import RunFolder
from jobcheck.store.reports import write_report

from .html import html
from .junit import junit
from .summary import summary


def write_all(report: Report, folder: RunFolder, *, fail_transport: bool = False) -> Path:
    """Writes report.json, junit.xml, report.html and summary.md, makes `latest` name the run, returns the HTML's path.

    `fail_transport`: transport findings are failures in JUnit too (`--fail-on all`). Raises UsageError or Aborted when
    the disk refuses.
    """
    write_report(folder.report, report)
    write_whole(folder.junit, junit(report, fail_transport=fail_transport))
    write_whole(folder.summary, summary(report))
    write_whole(folder.html, html(report))
    folder.finish()
    return folder.html
