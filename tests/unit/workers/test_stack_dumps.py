"""What is read from a stack dump, and which frame of it is the user's."""

from __future__ import annotations

from pathlib import Path

from jobcheck.workers import stacks
from jobcheck.workers.stacks import Frame, choose, parse_dump

ROOT = Path("/srv/shop")
PYTHON = "/usr/lib/python3.11"

DUMP = """\
Thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 324 in wait
  File "/srv/shop/heart.py", line 8 in beat

Current thread 0x00007f2 (most recent call first):
  File "/srv/shop/.venv/lib/python3.11/site-packages/requests/api.py", line 59 in request
  File "/srv/shop/shop/jobs.py", line 31 in charge_card
  File "/srv/shop/shop/jobs.py", line 12 in <module>
"""


def test_a_dump_is_read_as_one_stack_a_thread_innermost_call_first() -> None:
    waiting, working = parse_dump(DUMP)
    assert waiting == [Frame(f"{PYTHON}/threading.py", 324, "wait"), Frame("/srv/shop/heart.py", 8, "beat")]
    assert [frame.name for frame in working] == ["request", "charge_card", "<module>"]


def test_the_frame_is_the_innermost_of_the_users_own_and_not_a_librarys() -> None:
    assert choose(parse_dump(DUMP), ROOT) == "shop/jobs.py:31 charge_card"


def test_a_thread_that_waits_for_another_one_counts_only_when_it_is_the_only_one() -> None:
    waiting, _ = parse_dump(DUMP)
    assert choose([waiting], ROOT) == "heart.py:8 beat"


def test_two_candidates_are_not_guessed_between() -> None:
    one = [Frame("/srv/shop/a.py", 1, "f")]
    assert choose([one, [Frame("/srv/shop/b.py", 1, "g")]], ROOT) == ""
    assert choose([one, one], ROOT) == "a.py:1 f"


def test_code_outside_the_root_is_not_the_users() -> None:
    assert choose([[Frame("/opt/other/x.py", 1, "f")]], ROOT) == ""
    assert choose([[Frame("<frozen importlib._bootstrap>", 1, "f")]], ROOT) == ""
    assert choose([[Frame(f"{PYTHON}/socket.py", 1, "f")]], Path("/")) == ""


def test_a_relative_file_name_is_taken_as_relative_to_the_root() -> None:
    assert choose([[Frame("jobs.py", 3, "f")]], ROOT) == "jobs.py:3 f"


def test_a_root_inside_a_library_folder_is_respected() -> None:
    root = Path("/v/lib/python3.11/site-packages/jobcheck/_scenarios/apps/shop")
    assert choose([[Frame(f"{root}/jobs.py", 3, "f")]], root) == "jobs.py:3 f"


def test_jobchecks_own_code_in_a_worker_is_not_the_users() -> None:
    package = Path(stacks.__file__).parents[1]
    stack = [Frame(str(package / "workers/inside/agent.py"), 3, "run"), Frame("/x/jobs.py", 4, "f")]
    assert choose([stack], package.parent) == ""


def test_escaped_names_and_unknown_lines_are_read() -> None:
    text = 'Current thread 0x1 (most recent call first):\n  File "/srv/shop/caf\\xe9\\u20ac.py", line ??? in f\n'
    assert parse_dump(text) == [[Frame("/srv/shop/café€.py", 0, "f")]]


def test_anything_else_in_the_file_gives_no_frames() -> None:
    assert parse_dump("") == []
    assert parse_dump("noise\n  File broken\n\x00\n") == []
    assert parse_dump("Thread 0x1 (most recent call first):\n  <no Python frame>\n") == []


def test_code_of_a_named_package_is_the_users_too_by_its_place_in_the_package() -> None:
    site = "/srv/shop/.venv/lib/python3.11/site-packages"
    stack = [
        Frame(f"{site}/requests/api.py", 59, "request"),
        Frame(f"{site}/parcels/tasks.py", 51, "deliver"),
        Frame(f"{site}/celery/app/trace.py", 450, "trace_task"),
    ]
    assert choose([stack], ROOT) == ""
    assert choose([stack], ROOT, ["parcels"]) == "parcels/tasks.py:51 deliver"
    assert choose([[Frame(f"{site}/parcels.py", 3, "f")]], ROOT, ["parcels"]) == "parcels.py:3 f"
    assert choose([[Frame("/srv/shop/jobs.py", 7, "g"), *stack]], ROOT, ["parcels"]) == "jobs.py:7 g"
