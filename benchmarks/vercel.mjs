// The Vercel AI SDK, in a folder of its own; `libraries.py` runs it.
//
//     node vercel.mjs SERVER < chat-bodies.json
//
// Prints JSON as library.py does: seconds of CPU, by row. V8 compiles while it runs, so each row is
// run until it is warm, and the best of a few rounds counts.
import { readFileSync } from "node:fs";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";

const ROUNDS = 5;
const BATCH = 50;
const CONCURRENT = 100;

const server = process.argv[2];
const { plain } = JSON.parse(readFileSync(0, "utf8"));
const prompt = plain.messages[0].content;

function chat(kind) {
  const baseURL = `${server}/openai_chat.${kind}/v1`;
  return createOpenAICompatible({ name: "server", apiKey: "none", baseURL })("some-model");
}

function messages(kind) {
  const baseURL = `${server}/anthropic_messages.${kind}/v1`;
  return createAnthropic({ apiKey: "none", baseURL })("claude-opus-5");
}

async function measure(work, units) {
  let best = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    const start = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(start);
    best = Math.min(best, (user + system) / 1e6);
  }
  return best / units;
}

const found = {};
for (const [dialect, make] of [["openai_chat", chat], ["anthropic_messages", messages]]) {
  const model = make("whole");
  const complete = () => generateText({ model, prompt, maxRetries: 0 });
  const batch = async () => {
    for (let i = 0; i < BATCH; i++) await complete();
  };
  const stream = async () => {
    for await (const _ of streamText({ model: make("burst"), prompt, maxRetries: 0 }).textStream);
  };
  await batch();
  found[`whole ${dialect}`] = await measure(batch, BATCH);
  found[`concurrent ${dialect}`] = await measure(
    () => Promise.all(Array.from({ length: CONCURRENT }, complete)),
    CONCURRENT,
  );
  found[`burst ${dialect}`] = await measure(stream, 2000);
  found[`arguments ${dialect}`] = null;
  found[`history ${dialect}`] = null;
}
console.log(JSON.stringify(found));
process.exit(0);
