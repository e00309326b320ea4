"""Points from hand-written recordings."""

from __future__ import annotations

from jobcheck.explore.points import difference, merged, name, recorded

from .hand import Wire


def names(wire: Wire) -> list[str]:
    return [name(point) for point in recorded(wire.operations, broker="broker").points]


def test_a_request_is_a_point_when_the_server_says_that_it_changed_state() -> None:
    wire = Wire().ask("db", "postgres SELECT f()", "yes", guess="no").ask("db", "postgres UPDATE a", "no")
    assert names(wire) == ["db SELECT f()"]


def test_writes_inside_a_transaction_fold_into_their_commit() -> None:
    wire = Wire().ask("db", "postgres INSERT a", "pending").ask("db", "postgres COMMIT", "yes")
    assert names(wire) == ["db COMMIT"]


def test_what_nobody_can_tell_counts_as_a_point() -> None:
    assert names(Wire().ask("db", "postgres SELECT g()", "maybe").say("up", "opaque bytes", "maybe")) == [
        "db SELECT g()",
        "up bytes",
    ]


def test_a_delivery_is_a_point_and_a_poll_is_none() -> None:
    wire = Wire().deliver().ask("broker", "redis BRPOP celery", "no", role="poll")
    assert names(wire) == ["broker delivery"]


def test_noise_is_no_point_even_when_it_writes() -> None:
    assert names(Wire().ask("broker", "redis PUBLISH x", "yes", role="noise").ask("mail", "smtp DATA")) == ["mail DATA"]


def test_the_occurrence_counts_all_messages_of_the_shape_so_that_a_gate_can_count_them() -> None:
    wire = Wire().ask("db", "postgres UPDATE a", "no").ask("db", "postgres UPDATE a", "yes")
    assert names(wire) == ["db UPDATE a #2"]


def test_the_address_is_the_same_on_other_connections_and_other_days() -> None:
    one = recorded(Wire().ask("db", "postgres COMMIT", link=3).operations).points[0]
    two = recorded(Wire().ask("db", "postgres COMMIT", link=9).operations).points[0]
    assert one.id == two.id


def test_only_the_messages_of_the_job_count() -> None:
    wire = Wire(job="a").ask("db", "postgres COMMIT")
    wire.job = "b"
    wire.ask("mail", "smtp DATA")
    assert [point.upstream for point in recorded(wire.operations, job="a").points] == ["db"]


def test_recordings_that_agree_per_connection_agree() -> None:
    one = Wire().ask("broker", "redis EXEC(ack)").ask("payments", "http POST /charges")
    two = Wire().ask("payments", "http POST /charges").ask("broker", "redis EXEC(ack)")
    first, second = recorded(one.operations), recorded(two.operations)
    assert difference(first, second) == ""
    assert [point.ordered for point in merged(first, second)] == [False, False]


def test_recordings_that_differ_are_told_with_the_messages() -> None:
    one = recorded(Wire().ask("db", "postgres COMMIT").ask("mail", "smtp DATA").operations)
    two = recorded(Wire().ask("db", "postgres COMMIT").ask("db", "postgres COMMIT").operations)
    assert difference(one, two) == (
        "two clean runs of this job differ; only in the first: mail DATA; only in the second: db COMMIT #2"
    )


def test_another_order_on_one_connection_is_a_difference() -> None:
    one = recorded(Wire().ask("db", "postgres INSERT a").ask("db", "postgres INSERT b").operations)
    two = recorded(Wire().ask("db", "postgres INSERT b").ask("db", "postgres INSERT a").operations)
    assert "in another order on a connection" in difference(one, two)
