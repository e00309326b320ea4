"""Node and Ruby behind a rig: what is preloaded runs first, and their own HTTPS clients trust the run's certificate."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

import jobcheck
from jobcheck.errors import UsageError
from jobcheck.events import Bus
from jobcheck.runner.lane import Lane
from jobcheck.runner.stage import Stage
from jobcheck.runner.surroundings import preload_variables
from jobcheck.workers.spec import ProcessSpec, ReadyNow

WITHIN = 60.0
"""Seconds for an interpreter to start, call and end."""
PRELOAD_JS = 'process.env.CHARGED_BY = "preloaded"; console.log("x.js is first");\n'
PRELOAD_RB = 'ENV["CHARGED_BY"] = "preloaded"\nputs "x.rb is first"\n'
BY_HTTPS = """
const https = require("node:https");
console.log("app begins");
const body = JSON.stringify({ client: "https", by: process.env.CHARGED_BY });
const how = { method: "POST", headers: { "content-type": "application/json" } };
const call = https.request(process.env.PAY + "/charges", how, (answer) => {
  console.log("status", answer.statusCode);
  answer.resume();
});
call.on("error", (error) => console.log("error", error.code));
call.end(body);
"""
BY_FETCH = """
console.log("app begins");
const body = JSON.stringify({ client: "fetch", by: process.env.CHARGED_BY });
fetch(process.env.PAY + "/charges", { method: "POST", headers: { "content-type": "application/json" }, body })
  .then((answer) => console.log("status", answer.status), (error) => console.log("error", error.cause.code));
"""
BY_NET_HTTP = """
require "net/http"
require "json"
puts "app begins"
url = URI(ENV["PAY"] + "/charges")
begin
  body = {client: "net/http", by: ENV["CHARGED_BY"]}.to_json
  answer = Net::HTTP.post(url, body, "content-type" => "application/json")
  puts "status #{answer.code}"
rescue OpenSSL::SSL::SSLError => error
  puts "error #{error.message}"
end
"""
APPS = {
    "https": ("node", "app.js", BY_HTTPS, "x.js is first"),
    "fetch": ("node", "app.js", BY_FETCH, "x.js is first"),
    "net/http": ("ruby", "app.rb", BY_NET_HTTP, "x.rb is first"),
}


def rig(folder: Path, **env: str) -> jobcheck.Rig:
    folder.mkdir(exist_ok=True)
    (folder / "x.js").write_text(PRELOAD_JS)
    (folder / "x.rb").write_text(PRELOAD_RB)
    made = jobcheck.Rig(
        jobcheck.celery("tiny:app"),
        upstreams={"broker": jobcheck.redis(), "payments": jobcheck.provider(tls=True)},
        env={"BROKER_URL": "{broker.url}", "PAY": "{payments.url}", **env},
        preload=["x.js", "x.rb"],
        root=str(folder),
    )
    made.file = str(folder / "rig.py")
    return made


async def ran(one: jobcheck.Rig, folder: Path, program: str, file: str) -> tuple[list[str], list[tuple[str, str]], str]:
    """A process of the rig, started as its workers are: its lines, what was charged, and what the taps say."""
    interpreter = shutil.which(program)
    assert interpreter, f"expected {program} on PATH: apt-get install nodejs npm ruby"
    async with Stage(seed=7, bus=Bus(), logs=folder / "logs") as stage, Lane(stage, one, 0) as lane:
        slot = await lane.slot("w1")
        spec = ProcessSpec(
            name=program, argv=(interpreter, file), env=lane.environment(slot), cwd=one.folder, ready=ReadyNow()
        )
        worker = await stage.supervisor.start(spec)
        await worker.wait(WITHIN)
        assert not worker.alive, worker.output.text
        charged = [(effect.name, effect.body) for effect in lane.ledger.since(0)]
        return worker.output.tail(), charged, " ".join(lane.trace.notes)


@pytest.mark.parametrize("client", APPS)
def test_a_preload_runs_first_and_the_client_trusts_the_tap(tmp_path: Path, client: str) -> None:
    program, file, text, first = APPS[client]
    one = rig(tmp_path)
    (tmp_path / file).write_text(text)
    lines, charged, notes = asyncio.run(ran(one, tmp_path, program, file))
    assert lines == [first, "app begins", "status 201"], notes
    assert len(charged) == 1
    name, body = charged[0]
    assert name == "payments POST /charges"
    assert f'"client":"{client}"' in body
    assert '"by":"preloaded"' in body


@pytest.mark.parametrize("client", ["fetch", "net/http"])
def test_a_client_that_is_told_another_authority_is_named(tmp_path: Path, client: str) -> None:
    """The proof that the trust comes from these variables."""
    program, file, text, first = APPS[client]
    other = tmp_path / "other.pem"
    other.write_text("")
    one = rig(tmp_path, NODE_EXTRA_CA_CERTS=str(other), SSL_CERT_FILE=str(other))
    (tmp_path / file).write_text(text)
    lines, charged, notes = asyncio.run(ran(one, tmp_path, program, file))
    assert lines[:2] == [first, "app begins"], lines
    assert lines[-1].startswith("error "), lines
    assert charged == []
    assert "trust jobcheck's certificate" in notes


def test_nodes_preload_may_lie_in_a_folder_with_a_space(tmp_path: Path) -> None:
    folder = tmp_path / "my app"
    one = rig(folder)
    one.preload = ("x.js",)
    (folder / "app.js").write_text(BY_FETCH)
    lines, charged, _ = asyncio.run(ran(one, tmp_path, "node", "app.js"))
    assert lines == ["x.js is first", "app begins", "status 201"]
    assert len(charged) == 1
    with pytest.raises(UsageError, match="without spaces in its path, as RUBYOPT knows none"):
        preload_variables([folder / "x.rb"])
