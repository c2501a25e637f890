// What every client goes through, with every upstream; the same as `../python/checks.py`.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { deflateSync, crc32 } from "node:zlib";

const stand = JSON.parse(process.env.INTERLINGUA_STAND);
export const KEY = stand.key;
export const GATEWAYS = stand.gateways;

// The packages are in a folder of their own, where `import` would not look.
const folder = process.env.INTERLINGUA_PACKAGES;
const find = createRequire(join(folder, "package.json"));
export const load = (name) => import(find.resolve(name));
const version = (name) =>
  JSON.parse(readFileSync(join(folder, "node_modules", name, "package.json"), "utf8")).version;

export const GREETING = "Hello from the upstream.";
export const SAY = `Say: ${GREETING}`;
export const CITIES = ["Oslo", "Rome", "Lima", "Cairo", "Delhi", "Tokyo", "Quito", "Paris"];
export const LOOK = (city) => `What is the weather in ${city}?`;
export const KEPT = "State: kept."; // what the model says if it got back all state that it had sent
export const PHOTO = "Take a photo.";
export const JOKE = "Tell me a joke.";
export const weather = (city) => `${city}: 4 C, rain`;
export const SCHEMA = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
export const EMPTY = { type: "object", properties: {}, additionalProperties: false };
export const JOKE_SCHEMA = {
  type: "object",
  properties: { setup: { type: "string" }, rating: { type: "integer" } },
  required: ["setup", "rating"],
  additionalProperties: false,
};

const RETRY_AFTER = 1100; // milliseconds until a rate limit of the model has passed
export const afterRateLimit = () => new Promise((done) => setTimeout(done, RETRY_AFTER));

export class NotApplicable extends Error {}

// A picture of one pixel.
function picture() {
  const number = (value) => Buffer.from(new Uint8Array(new Uint32Array([value]).buffer).reverse());
  const chunk = (name, data) => {
    const body = Buffer.concat([Buffer.from(name), data]);
    return Buffer.concat([number(data.length), body, number(crc32(body))]);
  };
  const head = Buffer.concat([number(1), number(1), Buffer.from([8, 2, 0, 0, 0])]);
  const pixel = deflateSync(Buffer.from([0, 255, 0, 0]));
  const start = Buffer.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10]);
  const chunks = [chunk("IHDR", head), chunk("IDAT", pixel), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([start, ...chunks]);
}
export const PNG = picture();
export const PNG_URL = `data:image/png;base64,${PNG.toString("base64")}`;
export const PICTURE = `[image image/png ${PNG.length} bytes]`;

export function check(condition, note) {
  if (!condition) throw new Error(note ?? "The check failed.");
}

export function equal(given, wanted) {
  check(given === wanted, `${JSON.stringify(given)} is not ${JSON.stringify(wanted)}`);
}

export function has(answer, wanted) {
  check(answer.includes(wanted), `no ${JSON.stringify(wanted)} in ${JSON.stringify(answer)}`);
}

// The error that a call raises.
export async function failure(call) {
  try {
    await call();
  } catch (error) {
    return error;
  }
  throw new Error("There was no error.");
}

async function attempt(run) {
  try {
    return ["pass", (await run()) ?? ""];
  } catch (error) {
    if (error instanceof NotApplicable) return ["not applicable", error.message];
    console.error(error);
    return ["fail", `${error.name}: ${error.message}`];
  }
}

// Tries the clients that `make` gives for each upstream, and prints a line for each feature. The
// upstreams are tried beside each other.
export async function report(make) {
  const tried = async (upstream) => {
    for (const { client, package: name, features } of make(upstream)) {
      for (const [feature, run] of Object.entries(features)) {
        const [result, note] = await attempt(run);
        const line = { client, version: version(name), upstream, feature, result, note };
        process.stdout.write(`${JSON.stringify(line)}\n`);
      }
    }
  };
  await Promise.all(Object.keys(GATEWAYS).map(tried));
}
