"""What a user of toxiproxy-python does: `client.py PORT UPSTREAM`. Prints what it saw as JSON.

A process of its own, as the library keeps host and port as globals.
"""

from __future__ import annotations

import json
import socket
import sys

from toxiproxy import Toxiproxy

server = Toxiproxy()
server.update_api_consumer("127.0.0.1", int(sys.argv[1]))
seen = {"running": server.running(), "there": sorted(server.proxies())}
proxy = server.create(upstream=sys.argv[2], name="db")
host, port = proxy.listen.split(":")


def first_bytes() -> str:
    """What a client of the proxy gets of the greeting."""
    got = b""
    with socket.create_connection((host, int(port)), timeout=20) as link:
        while len(got) < 8 and (more := link.recv(8)):
            got += more
    return got.decode()


seen["before"] = first_bytes()
proxy.add_toxic(type="limit_data", name="cut", attributes={"bytes": 3})
seen["toxics"] = sorted(proxy.toxics())
seen["cut"] = first_bytes()
toxic = proxy.get_toxic("cut")
seen["toxic"] = [toxic.type, toxic.stream, toxic.attributes]
proxy.destroy_toxic("cut")
seen["after"] = first_bytes()
with proxy.down():
    try:
        first_bytes()
    except ConnectionRefusedError:
        seen["down"] = "refused"
seen["up"] = first_bytes()
try:
    proxy.add_toxic(type="nonsense", name="x")
except Exception as error:  # the library's own
    seen["error"] = type(error).__name__
proxy.add_toxic(type="latency", attributes={"latency": 60000})
seen["reset"] = [server.reset(), first_bytes()]
server.populate([{"name": "p", "upstream": sys.argv[2], "listen": "127.0.0.1:0"}])
seen["populated"] = sorted(server.proxies())
server.destroy_all()
seen["end"] = sorted(server.proxies())
sys.stdout.write(json.dumps(seen))
