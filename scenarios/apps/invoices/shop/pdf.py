"""Invoices as PDF files."""

import os
from pathlib import Path

from . import settings
from .db import Invoice


def path_of(invoice_id: int) -> Path:
    return Path(settings.PDF_FOLDER) / f"invoice-{invoice_id}.pdf"


def write(invoice: Invoice) -> Path:
    """Writes the invoice's file whole or not at all; a second time gives the same file."""
    path = path_of(invoice.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("wb") as file:
        file.write(render(invoice))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    return path


def render(invoice: Invoice) -> bytes:
    """A PDF document of one page with one line of text."""
    line = f"Invoice {invoice.id}: {invoice.amount_cents / 100:.2f} EUR, {invoice.customer}"
    escaped = line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)").encode("latin-1", "replace")
    text = b"BT /F1 14 Tf 72 770 Td (" + escaped + b") Tj ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table)
    return bytes(out)
