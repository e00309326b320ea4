// What a user of toxiproxy-node-client does: `node client.js PORT UPSTREAM`. Prints what it saw as JSON.
const net = require("node:net");
const { Toxiproxy, Toxic } = require("toxiproxy-node-client");

const server = new Toxiproxy(`http://127.0.0.1:${process.argv[2]}`);
const upstream = process.argv[3];

function firstBytes(proxy) {
  const [host, port] = proxy.listen.split(":");
  return new Promise((resolve, reject) => {
    let got = "";
    const link = net.connect(Number(port), host);
    link.on("data", (data) => { got += data; if (got.length >= 8) link.destroy(); });
    link.on("close", () => resolve(got));
    link.on("error", (error) => reject(error.code));
  });
}

async function main() {
  const seen = { version: await server.getVersion(), there: Object.keys(await server.getAll()) };
  const proxy = await server.createProxy({ name: "db", listen: "127.0.0.1:0", upstream });
  seen.before = await firstBytes(proxy);
  const toxic = await proxy.addToxic({ name: "cut", type: "limit_data", stream: "downstream", toxicity: 1.0, attributes: { bytes: 3 } });
  seen.cut = await firstBytes(proxy);
  seen.changed = (await toxic.update({ attributes: { bytes: 5 } })).attributes;
  seen.cutLater = await firstBytes(proxy);
  seen.toxic = (await proxy.getToxic("cut")).toJson();
  await toxic.remove();
  seen.after = await firstBytes(proxy);
  await proxy.update({ enabled: false, listen: proxy.listen, upstream });
  seen.down = await firstBytes(proxy).catch((code) => code);
  await server.reset();
  seen.up = await firstBytes(await server.get("db"));
  seen.again = await server.createProxy({ name: "db", listen: "127.0.0.1:0", upstream }).catch((error) => error.message);
  seen.populated = Object.keys(await server.populate([{ name: "p", listen: "127.0.0.1:0", upstream }]));
  for (const one of Object.values(await server.getAll())) await one.remove();
  seen.end = Object.keys(await server.getAll());
  console.log(JSON.stringify(seen));
}

main();
