// Asks the search of the built site, in its own code, and prints the addresses it shows, best first.
//   node search_site.mjs SITE QUERY...
import { readFileSync, readdirSync } from "node:fs";

const [site, ...queries] = process.argv.slice(2);
const folder = `${site}/assets/javascripts/workers`;
const [name] = readdirSync(folder).filter((file) => /^search\..*\.js$/.test(file));
const index = JSON.parse(readFileSync(`${site}/search.json`, "utf8"));
const READY = 1, ANSWERED = 3;

let receive;
globalThis.self = { postMessage: (message) => receive(message) };
(0, eval)(readFileSync(`${folder}/${name}`, "utf8")); // the worker of the page
const send = (message, expected) =>
  new Promise((resolve, reject) => {
    receive = (reply) => (reply.type === expected ? resolve(reply.data) : reject(new Error(`reply ${reply.type}`)));
    self.onmessage({ data: structuredClone(message) }); // as between a page and its worker
  });

const filter = {
  input: { type: "operator", data: { operator: "and", operands: [] } },
  aggregation: { input: [{ type: "term", data: { field: "tags" } }] },
};
await send({ type: 0, data: index }, READY);
const found = {};
for (const input of queries) {
  const { items } = await send({ type: 2, data: { input, filter } }, ANSWERED);
  found[input] = items.map((item) => index.items[item.id].location);
}
console.log(JSON.stringify(found));
