"""What is asked of Toxiproxy's HTTP API: requests in the order of a dialogue, on a fresh server each.

`{taken}` is a port that somebody listens on.
"""

from __future__ import annotations

from typing import Any

Request = tuple[str, str, Any]
"""Method, target, body: a text as it is, anything else as JSON, None for none."""

LISTEN, UPSTREAM = "127.0.0.1:0", "127.0.0.1:1"


def proxy(name: Any = "a", **more: Any) -> dict[str, Any]:
    return {"name": name, "listen": LISTEN, "upstream": UPSTREAM, **more}


A: Request = ("POST", "/proxies", proxy())
T = "/proxies/a/toxics"


def toxic(kind: Any = "latency", **more: Any) -> Request:
    return ("POST", T, {"type": kind, **more})


PROXIES: dict[str, list[Request]] = {
    "what it is": [("GET", "/version", None), ("GET", "/proxies", None), ("POST", "/reset", None)],
    "a proxy is made, shown and given up": [
        A,
        ("GET", "/proxies/a", None),
        ("GET", "/proxies", None),
        A,
        ("DELETE", "/proxies/a", None),
        ("DELETE", "/proxies/a", None),
        ("GET", "/proxies/a", None),
    ],
    "what a proxy needs": [
        ("POST", "/proxies", {"listen": LISTEN, "upstream": UPSTREAM}),
        ("POST", "/proxies", {"name": "b", "listen": LISTEN}),
        ("POST", "/proxies", proxy(None)),
        ("POST", "/proxies", {"name": "b", "upstream": "nonsense", "enabled": False}),
        ("POST", "/proxies", {"NAME": "c", "Listen": "localhost:0", "UPSTREAM": "nowhere", "extra": 1}),
        ("POST", "/proxies", proxy("d", toxics=[{"type": "latency"}])),
    ],
    "where a proxy cannot listen": [
        ("POST", "/proxies", proxy("b", listen="nonsense")),
        ("POST", "/proxies", proxy("b", listen="127.0.0.1:99999")),
        ("POST", "/proxies", proxy("b", listen="127.0.0.1:{taken}")),
        ("GET", "/proxies", None),
    ],
    "a proxy is switched off and on": [
        A,
        ("POST", "/proxies/a", {"enabled": False}),
        ("PATCH", "/proxies/a", {"enabled": True}),
        ("PATCH", "/proxies/a", {}),
        ("POST", "/proxies/a", None),
        ("PATCH", "/proxies/a", "null"),
        ("PATCH", "/proxies/zz", {}),
    ],
    "a proxy is moved": [
        A,
        ("PATCH", "/proxies/a", {"upstream": "127.0.0.1:2", "name": "q"}),
        ("POST", "/proxies/a", {"listen": "nonsense"}),
        ("POST", "/proxies/a", {"enabled": False, "listen": LISTEN}),
        ("POST", "/proxies/a", {"listen": "127.0.0.1:{taken}", "enabled": True}),
        ("GET", "/proxies/a", None),
        ("POST", "/proxies/a", {"listen": LISTEN, "enabled": True}),
        ("POST", "/proxies/a", {"upstream": ""}),
    ],
    "bodies that are none": [
        A,
        *[
            ("POST", "/proxies", body)
            for body in ("", "{", "{bad", "[]", "null", "tru", '"x"', '{"name":', '{"name":"a" "b"}', "[1,]", '{"a" 1}')
        ],
        ("POST", "/proxies", '{"name":"b","listen":"127.0.0.1:0","upstream":"x:1"} and more'),
        ("POST", "/proxies", {"name": 5}),
        ("POST", "/proxies", proxy("c", enabled="x")),
        ("POST", "/proxies/a", {"listen": 5}),
        ("PATCH", "/proxies/a", "{bad"),
        ("POST", T, ""),
        ("POST", T, "[]"),
        ("POST", T, "null"),
        ("POST", "/populate", "{"),
        ("POST", "/populate", ""),
    ],
    "what is not there": [
        ("GET", "/", None),
        ("GET", "/nothing", None),
        ("GET", "/proxies/", None),
        ("GET", "//proxies", None),
        ("GET", "/version/", None),
        ("GET", "/proxies/zz", None),
        ("GET", "/proxies/zz/toxics", None),
        ("GET", "/proxies/zz/toxics/x", None),
        ("GET", "/proxies/zz/toxics/x/y", None),
        ("GET", "/proxies?x=1", None),
        ("POST", "/proxies/zz/toxics", {"type": "latency"}),
    ],
    "what is not allowed": [
        A,
        *[
            (method, target, None)
            for method, target in (
                *[("DELETE", "/proxies"), ("PUT", "/proxies/a"), ("HEAD", "/proxies"), ("OPTIONS", "/proxies")],
                *[("GET", "/reset"), ("GET", "/populate"), ("POST", "/version"), ("DELETE", T), ("PATCH", T)],
                *[("PUT", f"{T}/x"), ("HEAD", "/version")],
            )
        ],
    ],
    "a name with a slash is shown and cannot be reached": [
        ("POST", "/proxies", proxy("d d/x", enabled=False)),
        ("GET", "/proxies", None),
        ("GET", "/proxies/d%20d%2Fx", None),
        ("POST", "/proxies", proxy("d d")),
        ("GET", "/proxies/d%20d", None),
    ],
}

TOXICS: dict[str, list[Request]] = {
    "a toxic is added, shown, changed and removed": [
        A,
        ("GET", T, None),
        toxic(attributes={"latency": 5}),
        toxic(attributes={"latency": 5}),
        ("GET", f"{T}/latency_downstream", None),
        ("POST", f"{T}/latency_downstream", {"attributes": {"jitter": 3}}),
        ("PATCH", f"{T}/latency_downstream", {"toxicity": 0.5, "attributes": {"latency": 9}}),
        ("PATCH", f"{T}/latency_downstream", {"name": "o", "stream": "upstream", "type": "slicer"}),
        ("GET", "/proxies/a", None),
        ("DELETE", f"{T}/latency_downstream", None),
        ("DELETE", f"{T}/latency_downstream", None),
        ("GET", f"{T}/latency_downstream", None),
        ("PATCH", f"{T}/latency_downstream", {}),
    ],
    "all kinds, those upstream first": [
        A,
        toxic("latency", attributes={"latency": 1, "zzz": 1}),
        toxic("limit_data", stream="upstream", name="ld"),
        toxic("bandwidth", attributes={"rate": 5}),
        toxic("slow_close", toxicity=0),
        toxic("timeout", attributes={"timeout": None}),
        toxic("reset_peer", toxicity=None),
        toxic("slicer", attributes={"AVERAGE_SIZE": 7}, stream="UPSTREAM"),
        toxic("noop"),
        ("POST", f"{T}/noop_downstream", {"attributes": {"x": 1}}),
        ("GET", T, None),
        ("POST", "/proxies/a", {"enabled": False}),
        toxic("latency", name="while it is off"),
        ("DELETE", f"{T}/noop_downstream", None),
        ("POST", "/reset", None),
        ("GET", "/proxies", None),
    ],
    "values that mean nothing are taken": [
        A,
        toxic("latency", attributes={"latency": -4}),
        toxic("slicer", toxicity=7),
        toxic("slicer", name="s", attributes={"average_size": 1, "size_variation": 9, "delay": -1}),
        ("GET", T, None),
    ],
    "toxics that are none": [
        A,
        toxic("latncy"),
        toxic("down"),
        toxic(stream="sideways"),
        toxic(5),
        toxic(stream=5),
        toxic(name=5),
        toxic(toxicity="x"),
        toxic(attributes=5),
        toxic(attributes=[]),
        ("POST", T, {}),
        *[toxic(attributes={"latency": value}) for value in ("5", 5.5, True, [], 10**20)],
        ("POST", T, '{"type": "timeout", "attributes": {"timeout": 1e3}}'),
        toxic(name="x"),
        ("POST", f"{T}/x", {"toxicity": "x"}),
        ("POST", f"{T}/x", {"toxicity": None, "attributes": None}),
        ("PATCH", f"{T}/x", {"attributes": {"latency": "x"}}),
        ("PATCH", f"{T}/x", "{"),
        ("GET", T, None),
    ],
}

POPULATE: dict[str, list[Request]] = {
    "proxies are made together": [
        ("POST", "/populate", [proxy("p"), proxy("q", enabled=False)]),
        ("POST", "/populate", [proxy("p", upstream="127.0.0.1:9")]),
        ("POST", "/populate", []),
        ("POST", "/populate", "null"),
        ("POST", "/populate", [proxy("dup"), proxy("dup", upstream="127.0.0.1:2")]),
        ("GET", "/proxies", None),
    ],
    "a proxy that is there and the same keeps its toxics": [
        ("POST", "/proxies", proxy("a", listen="127.0.0.1:0", enabled=False)),
        toxic(),
        ("POST", "/populate", [proxy("a", enabled=False)]),
        ("GET", T, None),
        ("POST", "/populate", [proxy("a", upstream="127.0.0.1:2", enabled=False)]),
        ("GET", T, None),
    ],
    "what was made before a failure stays": [
        ("POST", "/populate", [{"name": "p2"}]),
        ("POST", "/populate", [proxy("p1"), {"upstream": "x:1"}]),
        ("POST", "/populate", [proxy("p3"), proxy("p4", listen="127.0.0.1:{taken}")]),
        ("POST", "/populate", {}),
        ("POST", "/populate", [5]),
        ("POST", "/populate", [proxy("u", enabled="x")]),
        ("GET", "/proxies", None),
    ],
}

DIALOGUES = {**PROXIES, **TOXICS, **POPULATE}
