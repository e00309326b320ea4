"""What a user's chaos script does to a run with toxiproxy-python: `by_hand.py URL`. Prints what it saw as JSON."""

from __future__ import annotations

import json
import sys
from urllib.parse import urlsplit

from toxiproxy import Toxiproxy

at = urlsplit(sys.argv[1])
server = Toxiproxy()
server.update_api_consumer(at.hostname, at.port)
seen = {"there": sorted(server.proxies())}
broker = server.get_proxy("broker")
broker.add_toxic(type="latency", name="slow", attributes={"latency": 30})
seen["toxics"] = sorted(server.get_proxy("broker").toxics())
broker.destroy_toxic("slow")
with server.get_proxy("w1:payments").down():
    seen["down"] = server.get_proxy("w1:payments").enabled
server.get_proxy("broker").add_toxic(type="bandwidth", attributes={"rate": 5000})  # and leaves it
sys.stdout.write(json.dumps(seen))
