"""A worker's word on one job is read from its log, whatever else is written there."""

from __future__ import annotations

from jobcheck.payloads.words import End, read

HEAD = "[2026-11-29 10:00:00,000: {}] "
ERROR = HEAD.format("ERROR/ForkPoolWorker-1")
INFO = HEAD.format("INFO/ForkPoolWorker-1")
SIGNATURE = "charge() missing 1 required positional argument: 'notify'"


def test_success_of_this_job_counts_and_that_of_another_does_not() -> None:
    """Ids are compared."""
    lines = [f"{INFO}Task shop.charge[other] succeeded in 0.1s: None"]
    assert read(lines, "mine", "shop.charge") is None
    said = read([*lines, f"{INFO}Task shop.charge[mine] succeeded in 0.1s: None"], "mine", "shop.charge")
    assert said is not None
    assert said.end is End.SUCCEEDED


TRACED = [
    f'{ERROR}Task shop.charge[mine] raised unexpected: KeyError("currency")',
    "Traceback (most recent call last):",
    '  File "/lib/celery/app/trace.py", line 453, in trace_task',
    "    R = retval = fun(*args, **kwargs)",
    "                 ^^^^^^^^^^^^^^^^^^^^",
    '  File "/app/shop/jobs.py", line 31, in charge',
    '    order["currency"]',
    "KeyError: 'currency'",
]


def test_a_failure_has_its_error_and_its_frames() -> None:
    """The line is the innermost one of the app's own."""
    said = read(TRACED, "mine", "shop.charge")
    assert said is not None
    assert (said.end, said.text, said.line) == (End.FAILED, "KeyError: 'currency'", "jobs.py:31 charge")
    assert [frame.of_celery for frame in said.frames] == [True, False]


def test_a_traceback_that_is_still_written_is_waited_for() -> None:
    """Every beginning of it says nothing yet; when no more is to come, what is there has to do."""
    for end in range(1, len(TRACED)):
        assert read(TRACED[:end], "mine", "shop.charge") is None
    said = read(TRACED[:1], "mine", "shop.charge", complete=True)
    assert said is not None
    assert said.error == "KeyError"


def test_an_expected_error_has_no_traceback() -> None:
    """What a task names in `throws` is told in one line, so nothing is waited for."""
    said = read([f"{INFO}Task shop.charge[mine] raised expected: KeyError('x')"], "mine", "shop.charge")
    assert said is not None
    assert said.text == "KeyError: 'x'"


def test_the_last_of_several_tracebacks_counts() -> None:
    """What was raised while another error was handled is what the job ended with."""
    handled = [
        *TRACED[:1],
        *["Traceback (most recent call last):", '  File "/app/a.py", line 1, in a', "ValueError: first", ""],
        *["During handling of the above exception, another exception occurred:", "", *TRACED[1:]],
    ]
    said = read(handled, "mine", "shop.charge")
    assert said is not None
    assert said.line == "jobs.py:31 charge"


def test_a_retry_tells_its_error_in_its_line() -> None:
    """There is no traceback then."""
    line = f'{INFO}Task shop.charge[mine] retry: Retry in 7s: TypeError("{SIGNATURE}")'
    said = read([line], "mine", "shop.charge")
    assert said is not None
    assert (said.end, said.error, said.message) == (End.RETRYING, "TypeError", SIGNATURE)
    said = read([f"{INFO}Task shop.charge[mine] retry: Retry in 7s"], "mine", "shop.charge")
    assert said is not None
    assert said.end is End.RETRYING


def test_dropped_messages_are_told_apart() -> None:
    """They have no id in the log, so the task's name counts, and for undecodable ones the time alone."""
    unregistered = HEAD.format("ERROR/MainProcess") + "Received unregistered task of type 'shop.charge'."
    said = read([unregistered], "mine", "shop.charge")
    assert said is not None
    assert (said.end, said.error) == (End.DROPPED, "unregistered task")
    assert read([unregistered], "mine", "shop.other") is None
    refused = "Can't decode message body: ContentDisallowed('Refusing to ...') [type:'x' encoding:'y' headers:{}]"
    said = read([refused], "mine", "shop.charge")
    assert said is not None
    assert said.text == "cannot decode its body: ContentDisallowed('Refusing to ...')"


def test_a_rejected_retry_is_told_by_its_first_traceback() -> None:
    """Its line has no class of an error, and its last traceback is Celery's own."""
    lines = [
        f"{INFO}Task shop.charge[mine] reject requeue=False: {SIGNATURE}",
        *["Traceback (most recent call last):", '  File "/lib/celery/app/autoretry.py", line 38, in run'],
        *["    return task._orig_run(*args, **kwargs)", f"TypeError: {SIGNATURE}", ""],
        *["During handling of the above exception, another exception occurred:", ""],
        *["Traceback (most recent call last):", '  File "/lib/celery/app/task.py", line 961, in retry'],
        *["    raise Reject(exc, requeue=False)", "celery.exceptions.Reject: (TypeError(...), False)"],
    ]
    said = read(lines, "mine", "shop.charge")
    assert said is not None
    assert (said.end, said.error, said.message) == (End.REJECTED, "TypeError", SIGNATURE)
    assert all(frame.of_celery for frame in said.frames)
    assert read(lines[:4], "mine", "shop.charge") is None
