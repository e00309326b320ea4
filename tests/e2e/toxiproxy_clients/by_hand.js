// What a user's chaos script does to a run with toxiproxy-node-client: `node by_hand.js URL`. Prints what it saw.
const { Toxiproxy } = require("toxiproxy-node-client");

async function main() {
  const server = new Toxiproxy(process.argv[2]);
  const seen = { there: Object.keys(await server.getAll()).sort() };
  const broker = await server.get("broker");
  const slow = await broker.addToxic({ name: "slow", type: "latency", stream: "downstream", toxicity: 1, attributes: { latency: 30, jitter: 0 } });
  seen.toxics = [(await (await server.get("broker")).getToxic("slow")).name];
  await slow.remove();
  const payments = await server.get("payments");
  await payments.update({ enabled: false, listen: payments.listen, upstream: payments.upstream });
  await payments.update({ enabled: true, listen: payments.listen, upstream: payments.upstream });
  seen.moved = await broker.update({ enabled: true, listen: "127.0.0.1:1", upstream: broker.upstream }).catch((error) => error.message.includes("403") || error.message);
  seen.populated = (await server.populate([{ name: "broker", listen: "127.0.0.1:1", upstream: "127.0.0.1:2" }])).broker.listen === broker.listen;
  seen.removed = await broker.remove().catch((error) => error.message.includes("403") || error.message);
  await server.reset();
  console.log(JSON.stringify(seen));
}

main();
