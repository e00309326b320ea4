"""Which jobs belong to a case, and what they are called."""

from __future__ import annotations

from jobcheck.explore.family import Family, Seen


def test_what_the_case_enqueued_and_all_that_it_causes_belong_to_it() -> None:
    family = Family(["a"])
    assert family.see(Seen("a", "shop.start", root="a"))
    assert family.see(Seen("b", "shop.mail", sender="a", root="a"))
    assert family.see(Seen("c", "shop.mail", parent="b", root="a"))
    assert [member.parent for member in family.tree] == ["", "a", "b"]
    assert [member.label for member in family.tree] == ["shop.start", "shop.mail", "shop.mail #2"]


def test_a_job_of_another_tree_is_a_stranger() -> None:
    family = Family(["a"])
    family.owns({"invoice": "700123"})
    assert family.see(Seen("a", "shop.start"))
    assert not family.see(Seen("x", "shop.mail", parent="y", root="z", text="(700123,)"))
    assert family.label("x") == ""


def test_without_a_root_the_ids_of_the_case_tell() -> None:
    """A relay or a scheduler sends it, in no job: its root is itself, or is not said."""
    family = Family(["a"])
    family.owns({"invoice": "700123"})
    assert family.see(Seen("r", "shop.mail", text="(700123,) {}"))
    assert family.see(Seen("s", "shop.mail", root="s", text="(700123,) {}"))
    assert not family.see(Seen("t", "shop.mail", root="t", text="(700124,) {}"))


def test_a_root_tells_where_the_parent_was_not_seen() -> None:
    family = Family(["a"])
    family.see(Seen("a", "shop.start"))
    assert family.see(Seen("d", "shop.mail", parent="unseen", root="a"))


def test_the_same_job_again_keeps_its_name() -> None:
    family = Family(["a"])
    assert family.see(Seen("a", "shop.start"))
    assert family.see(Seen("a", "shop.start"))
    assert [member.label for member in family.tree] == ["shop.start"]
    assert not family.see(Seen(""))
