// Vercel's AI SDK with the providers of each vendor.
import {
  CITIES, EMPTY, GATEWAYS, GREETING, JOKE, JOKE_SCHEMA, KEPT, KEY, LOOK, NotApplicable, PHOTO,
  PICTURE, PNG, SAY, SCHEMA, afterRateLimit, check, equal, failure, has, load, report, weather,
} from "./checks.mjs";

const { Output, generateText, jsonSchema, stepCountIs, streamText, tool } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const { createAnthropic } = await load("@ai-sdk/anthropic");
const { createGoogleGenerativeAI } = await load("@ai-sdk/google");

// Without a store, reasoning is sent back by the client, not by a reference to the server's copy.
const STATELESS = { openai: { store: false, include: ["reasoning.encrypted_content"] } };

const PROVIDERS = {
  "@ai-sdk/openai (Chat)": {
    package: "@ai-sdk/openai",
    model: (url, key, name = "gpt-4.1") =>
      createOpenAI({ baseURL: `${url}/v1`, apiKey: key }).chat(name),
    hasImages: false, // it writes the parts of a result as JSON text
    overflow: "context_length_exceeded",
  },
  "@ai-sdk/openai (Responses)": {
    package: "@ai-sdk/openai",
    model: (url, key, name = "gpt-5.2") =>
      createOpenAI({ baseURL: `${url}/v1`, apiKey: key }).responses(name),
    options: STATELESS,
    hasKept: true, // by default it sends references to what the server has
    hasImages: true,
    overflow: "context_length_exceeded",
  },
  "@ai-sdk/openai-compatible": {
    package: "@ai-sdk/openai-compatible",
    model: (url, key, name = "gpt-4.1") =>
      createOpenAICompatible({
        name: "gateway",
        baseURL: `${url}/v1`,
        apiKey: key,
        includeUsage: true,
        supportsStructuredOutputs: true,
      })(name),
    hasImages: false, // as above
    overflow: "context_length_exceeded",
  },
  "@ai-sdk/anthropic": {
    package: "@ai-sdk/anthropic",
    model: (url, key, name = "claude-haiku-4-5") =>
      createAnthropic({ baseURL: `${url}/v1`, apiKey: key })(name),
    hasImages: true,
    overflow: "prompt is too long",
  },
  "@ai-sdk/google": {
    package: "@ai-sdk/google",
    model: (url, key, name = "gemini-2.5-pro") =>
      createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey: key })(name),
    hasImages: true,
    wrongKey: 400, // Google's own status
    overflow: "token",
  },
};

const TOOLS = {
  get_weather: tool({
    description: "Tell the weather.",
    inputSchema: jsonSchema(SCHEMA),
    execute: async ({ city }) => weather(city),
  }),
  take_photo: tool({
    description: "Take a photo.",
    inputSchema: jsonSchema(EMPTY),
    execute: async () => PNG.toString("base64"),
    toModelOutput: ({ output }) => ({
      type: "content",
      value: [{ type: "image-data", data: output, mediaType: "image/png" }],
    }),
  }),
};

// Throws the errors of a stream, which the SDK would only print.
function streamed(settings) {
  let failed;
  const result = streamText({ ...settings, onError: ({ error }) => (failed = error) });
  return { result, check: () => { if (failed) throw failed; } };
}

const WAYS = {
  whole: async (settings) => {
    const { text, response, steps } = await generateText(settings);
    return { text, messages: response.messages, steps };
  },
  streamed: async (settings) => {
    const { result, check: checkErrors } = streamed(settings);
    await result.consumeStream();
    checkErrors();
    const { messages } = await result.response;
    return { text: await result.text, messages, steps: await result.steps };
  },
};

function features(provider, upstream) {
  const url = GATEWAYS[upstream];
  const settings = (key = KEY, name = undefined) => ({
    model: provider.model(url, key, name),
    maxRetries: 0,
    providerOptions: provider.options,
  });
  const loop = (way, messages) =>
    WAYS[way]({ ...settings(), messages, tools: TOOLS, stopWhen: stepCountIs(5) });
  const ask = (way, prompt) => loop(way, [{ role: "user", content: prompt }]);
  const eighth = {};
  const fails = (prompt, ...more) =>
    failure(() => generateText({ ...settings(...more), prompt }));
  return {
    text: async () => {
      const { text, usage } = await generateText({ ...settings(), prompt: SAY });
      equal(text, GREETING);
      check(usage.totalTokens > 0, "no usage");
    },
    stream: async () => {
      const { result, check: checkErrors } = streamed({ ...settings(), prompt: SAY });
      const pieces = [];
      for await (const piece of result.textStream) pieces.push(piece);
      checkErrors();
      equal(pieces.join(""), GREETING);
      check(pieces.length > 1, "one piece");
      check((await result.usage).totalTokens > 0, "no usage");
    },
    "tool loop": async () => has((await ask("whole", LOOK("Oslo"))).text, weather("Oslo")),
    "streamed tool loop": async () =>
      has((await ask("streamed", LOOK("Oslo"))).text, weather("Oslo")),
    "parallel calls": async () => {
      for (const way of Object.keys(WAYS)) {
        const { text, steps } = await ask(way, LOOK("Oslo and Rome"));
        equal(steps[0].toolCalls.map(({ input }) => input.city).join(), "Oslo,Rome");
        has(text, weather("Oslo"));
        has(text, weather("Rome"));
      }
    },
    "image in a tool result": async () => {
      if (!provider.hasImages) throw new NotApplicable("the SDK sends the parts of a result as text");
      has((await ask("whole", PHOTO)).text, PICTURE);
    },
    "eight turns": async () => {
      for (const way of Object.keys(WAYS)) {
        const messages = [];
        for (const [index, city] of CITIES.entries()) {
          messages.push({ role: "user", content: LOOK(city) });
          const answer = await loop(way, messages);
          messages.push(...answer.messages);
          eighth[way] = answer.text;
          has(answer.text, weather(city));
          has(answer.text, `Prompts: ${index + 1}.`);
        }
      }
    },
    "state returned": async () => has(eighth.whole, KEPT),
    "state returned, streamed": async () => has(eighth.streamed, KEPT),
    "kept responses": async () => {
      if (!provider.hasKept) throw new NotApplicable("only Responses has them");
      const messages = [];
      let text;
      for (const city of ["Oslo", "Rome"]) {
        messages.push({ role: "user", content: LOOK(city) });
        const stopWhen = stepCountIs(5);
        const model = provider.model(url, KEY);
        const answer = await WAYS.streamed({ model, maxRetries: 0, messages, tools: TOOLS, stopWhen });
        messages.push(...answer.messages);
        text = answer.text;
      }
      has(text, weather("Rome"));
      has(text, KEPT);
    },
    "structured output": async () => {
      const output = Output.object({ schema: jsonSchema(JOKE_SCHEMA) });
      const whole = await generateText({ ...settings(), prompt: JOKE, output });
      equal(typeof whole.output.setup, "string");
      const { result, check: checkErrors } = streamed({ ...settings(), prompt: JOKE, output });
      await result.consumeStream();
      checkErrors();
      equal(typeof (await result.output).setup, "string");
    },
    "error 401": async () =>
      equal((await fails(SAY, "il_wrong")).statusCode, provider.wrongKey ?? 401),
    "error 404": async () => equal((await fails(SAY, KEY, "no-such-model")).statusCode, 404),
    "error 400": async () => {
      const error = await fails("[fail 400]");
      equal(error.statusCode, 400);
      equal(error.isRetryable, false);
      has(error.message, "refuses this request");
    },
    "context overflow": async () => {
      const error = await fails("[fail overflow]");
      equal(error.statusCode, 400);
      has(error.responseBody, provider.overflow);
    },
    "error 429": async () => {
      const error = await fails("[fail 429]");
      await afterRateLimit();
      equal(error.statusCode, 429);
      equal(error.isRetryable, true);
    },
  };
}

await report((upstream) =>
  Object.entries(PROVIDERS).map(([client, provider]) => ({
    client,
    package: provider.package,
    features: features(provider, upstream),
  })),
);
