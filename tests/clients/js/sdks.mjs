// The vendors' SDKs for JavaScript, each in a loop of its own as their documentation shows it.
import {
  CITIES, EMPTY, GATEWAYS, GREETING, JOKE, JOKE_SCHEMA, KEPT, KEY, LOOK, NotApplicable, PHOTO,
  PICTURE, PNG, PNG_URL, SAY, SCHEMA, afterRateLimit, check, equal, failure, has, load, report, weather,
} from "./checks.mjs";

const { default: OpenAI } = await load("openai");
const { default: Anthropic } = await load("@anthropic-ai/sdk");
const { GoogleGenAI } = await load("@google/genai");

const MAX_STEPS = 6;

// What a tool gives: a text, or a picture.
const perform = (name, { city }) => (name === "take_photo" ? null : weather(city));

class Chat {
  static client = "openai (Chat)";
  static package = "openai";
  model = "gpt-4.1";
  messages = [];
  tools = [
    { type: "function", function: { name: "get_weather", parameters: SCHEMA } },
    { type: "function", function: { name: "take_photo", parameters: EMPTY } },
  ];

  constructor(url, key = KEY) {
    this.sdk = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
  }

  user(content) {
    this.messages.push({ role: "user", content });
  }

  body(more) {
    return { model: this.model, messages: this.messages, ...more };
  }

  async whole(more) {
    const { choices, usage } = await this.sdk.chat.completions.create(this.body(more));
    return { said: choices[0].message, tokens: usage.total_tokens, pieces: [] };
  }

  async streamed(more) {
    const pieces = [];
    const stream = this.sdk.chat.completions.stream(
      this.body({ ...more, stream_options: { include_usage: true } }),
    );
    stream.on("content", (piece) => pieces.push(piece));
    const { choices, usage } = await stream.finalChatCompletion();
    return { said: choices[0].message, tokens: usage.total_tokens, pieces };
  }

  calls(said) {
    return (said.tool_calls ?? []).map((call) => ({
      id: call.id,
      name: call.function.name,
      input: JSON.parse(call.function.arguments),
    }));
  }

  text(said) {
    return said.content;
  }

  give(said, calls) {
    this.messages.push(said);
    for (const { id, result } of calls) {
      // Chat has images only in messages of the user.
      this.messages.push({ role: "tool", tool_call_id: id, content: result ?? "The photo:" });
    }
    if (calls.some(({ result }) => result === null)) {
      this.user([{ type: "image_url", image_url: { url: PNG_URL } }]);
    }
  }

  structured() {
    const schema = { name: "joke", schema: JOKE_SCHEMA, strict: true };
    return { response_format: { type: "json_schema", json_schema: schema } };
  }

  overflow(error) {
    equal(error.status, 400);
    equal(error.code, "context_length_exceeded");
  }

  // The SDK calls the tools itself.
  async ownLoop(prompt) {
    const run = { name: "get_weather", parameters: SCHEMA, parse: JSON.parse };
    run.function = ({ city }) => weather(city);
    const messages = [{ role: "user", content: prompt }];
    const tools = [{ type: "function", function: run }];
    return this.sdk.chat.completions
      .runTools({ model: this.model, messages, tools, stream: true })
      .finalContent();
  }
}

class Responses {
  static client = "openai (Responses)";
  static package = "openai";
  model = "gpt-5.2";
  input = [];
  tools = [
    { type: "function", name: "get_weather", parameters: SCHEMA, strict: true },
    { type: "function", name: "take_photo", parameters: EMPTY, strict: true },
  ];

  constructor(url, key = KEY) {
    this.sdk = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
  }

  user(content) {
    this.input.push({ role: "user", content });
  }

  body(more) {
    const include = ["reasoning.encrypted_content"];
    return { model: this.model, input: this.input, store: false, include, ...more };
  }

  async whole(more) {
    const answer = await this.sdk.responses.create(this.body(more));
    return { said: answer, tokens: answer.usage.total_tokens, pieces: [] };
  }

  async streamed(more) {
    const pieces = [];
    const stream = this.sdk.responses.stream(this.body(more));
    stream.on("response.output_text.delta", ({ delta }) => pieces.push(delta));
    const answer = await stream.finalResponse();
    return { said: answer, tokens: answer.usage.total_tokens, pieces };
  }

  calls(said) {
    return said.output
      .filter((item) => item.type === "function_call")
      .map((item) => ({ id: item.call_id, name: item.name, input: JSON.parse(item.arguments) }));
  }

  text(said) {
    return said.output_text;
  }

  give(said, calls) {
    for (const { parsed_arguments: _, ...item } of said.output) this.input.push(item);
    for (const { id, result } of calls) {
      const output = result ?? [{ type: "input_image", image_url: PNG_URL, detail: "auto" }];
      this.input.push({ type: "function_call_output", call_id: id, output });
    }
  }

  structured() {
    const format = { type: "json_schema", name: "joke", schema: JOKE_SCHEMA, strict: true };
    return { text: { format } };
  }

  overflow(error) {
    equal(error.status, 400);
    equal(error.code, "context_length_exceeded");
  }

  // The server has the conversation; the client sends only what is new.
  async kept() {
    let input = LOOK("Oslo and Rome");
    let answer;
    for (let step = 0; step < 2; step += 1) {
      const previous_response_id = answer?.id;
      const body = { model: this.model, input, previous_response_id, tools: this.tools };
      answer = await this.sdk.responses.create(body);
      input = this.calls(answer).map(({ id, name, input: given }) => {
        const output = perform(name, given);
        return { type: "function_call_output", call_id: id, output };
      });
    }
    equal((await this.sdk.responses.retrieve(answer.id)).output_text, answer.output_text);
    await this.sdk.responses.delete(answer.id);
    equal((await failure(() => this.sdk.responses.retrieve(answer.id))).status, 404);
    return answer.output_text;
  }
}

class Messages {
  static client = "@anthropic-ai/sdk";
  static package = "@anthropic-ai/sdk";
  model = "claude-haiku-4-5";
  messages = [];
  tools = [
    { name: "get_weather", input_schema: SCHEMA },
    { name: "take_photo", input_schema: EMPTY },
  ];

  constructor(url, key = KEY) {
    this.sdk = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
  }

  user(content) {
    this.messages.push({ role: "user", content });
  }

  body(more) {
    return { model: this.model, max_tokens: 1000, messages: this.messages, ...more };
  }

  async whole(more) {
    const answer = await this.sdk.messages.create(this.body(more));
    return { said: answer, tokens: answer.usage.output_tokens, pieces: [] };
  }

  async streamed(more) {
    const pieces = [];
    const stream = this.sdk.messages.stream(this.body(more));
    stream.on("text", (piece) => pieces.push(piece));
    const answer = await stream.finalMessage();
    return { said: answer, tokens: answer.usage.output_tokens, pieces };
  }

  calls(said) {
    return said.content.filter((block) => block.type === "tool_use");
  }

  text(said) {
    return said.content.map((block) => (block.type === "text" ? block.text : "")).join("");
  }

  give(said, calls) {
    this.messages.push({ role: "assistant", content: said.content });
    const source = { type: "base64", media_type: "image/png", data: PNG.toString("base64") };
    const content = calls.map(({ id, result }) => ({
      type: "tool_result",
      tool_use_id: id,
      content: result ?? [{ type: "image", source }],
    }));
    this.user(content);
  }

  structured() {
    return { output_config: { format: { type: "json_schema", schema: JOKE_SCHEMA } } };
  }

  overflow(error) {
    equal(error.status, 400);
    has(error.message, "prompt is too long");
  }

  async ownLoop(prompt) {
    const run = async ({ city }) => weather(city);
    const own = { name: "get_weather", input_schema: SCHEMA, run, parse: (input) => input };
    const messages = [{ role: "user", content: prompt }];
    const runner = this.sdk.beta.messages.toolRunner({
      model: this.model,
      max_tokens: 1000,
      messages,
      tools: [own],
      stream: true,
    });
    return this.text(await runner.runUntilDone());
  }
}

class Gemini {
  static client = "@google/genai";
  static package = "@google/genai";
  model = "gemini-2.5-pro";
  contents = [];
  tools = [
    {
      functionDeclarations: [
        { name: "get_weather", parametersJsonSchema: SCHEMA },
        { name: "take_photo", parametersJsonSchema: EMPTY },
      ],
    },
  ];

  constructor(url, key = KEY) {
    this.sdk = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } });
  }

  user(text) {
    this.contents.push({ role: "user", parts: [{ text }] });
  }

  body(config) {
    return { model: this.model, contents: this.contents, config };
  }

  async whole(more) {
    const answer = await this.sdk.models.generateContent(this.body(more));
    const parts = answer.candidates[0].content.parts;
    return { said: parts, tokens: answer.usageMetadata.totalTokenCount, pieces: [] };
  }

  async streamed(more) {
    const said = [];
    const pieces = [];
    let tokens;
    for await (const piece of await this.sdk.models.generateContentStream(this.body(more))) {
      said.push(...(piece.candidates?.[0].content?.parts ?? []));
      if (piece.text) pieces.push(piece.text);
      tokens = piece.usageMetadata?.totalTokenCount ?? tokens;
    }
    return { said, tokens, pieces };
  }

  calls(said) {
    return said
      .filter((part) => part.functionCall)
      .map(({ functionCall: { id, name, args } }) => ({ id, name, input: args ?? {} }));
  }

  text(said) {
    return said.map((part) => (part.thought ? "" : (part.text ?? ""))).join("");
  }

  give(said, calls) {
    this.contents.push({ role: "model", parts: said });
    const parts = calls.map(({ id, name, result }) => {
      const response = { output: result ?? "The photo." };
      return { functionResponse: { id, name, response } };
    });
    if (calls.some(({ result }) => result === null)) {
      parts.push({ inlineData: { mimeType: "image/png", data: PNG.toString("base64") } });
    }
    this.contents.push({ role: "user", parts });
  }

  structured() {
    return { responseMimeType: "application/json", responseJsonSchema: JOKE_SCHEMA };
  }

  overflow(error) {
    equal(error.status, 400);
    has(error.message, "token");
  }

  // The SDK keeps the conversation, as it came in pieces.
  async ownLoop(prompt) {
    const chat = this.sdk.chats.create({ model: this.model, config: { tools: this.tools } });
    let message = prompt;
    for (let step = 0; step < 2; step += 1) {
      const said = [];
      for await (const piece of await chat.sendMessageStream({ message })) {
        said.push(...(piece.candidates?.[0].content?.parts ?? []));
      }
      const calls = this.calls(said);
      if (!calls.length) return this.text(said);
      message = calls.map(({ id, name, input }) => {
        const response = { output: perform(name, input) };
        return { functionResponse: { id, name, response } };
      });
    }
    return "The loop did not end.";
  }
}

// One conversation until an answer without calls; `way` is "whole" or "streamed".
async function loop(chat, prompt, way = "whole") {
  chat.user(prompt);
  const seen = [];
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const { said } = await chat[way]({ tools: chat.tools });
    const calls = chat.calls(said).map((call) => ({ ...call, result: perform(call.name, call.input) }));
    seen.push(...calls);
    if (!calls.length) {
      const text = chat.text(said);
      chat.give(said, []);
      return { text, seen };
    }
    chat.give(said, calls);
  }
  throw new Error("The loop did not end.");
}

async function eightTurns(chat, way) {
  let answer = "";
  for (const [index, city] of CITIES.entries()) {
    ({ text: answer } = await loop(chat, LOOK(city), way));
    has(answer, weather(city));
    has(answer, `Prompts: ${index + 1}.`);
  }
  return answer;
}

function features(Client, upstream) {
  const url = GATEWAYS[upstream];
  const open = (key) => new Client(url, key);
  const eighth = {};
  const ask = (prompt, change = {}, key = KEY) => {
    const chat = Object.assign(open(key), change);
    chat.user(prompt);
    return failure(() => chat.whole({}));
  };
  return {
    text: async () => {
      const chat = open();
      chat.user(SAY);
      const { said, tokens } = await chat.whole({});
      equal(chat.text(said), GREETING);
      check(tokens > 0, "no usage");
    },
    stream: async () => {
      const chat = open();
      chat.user(SAY);
      const { said, tokens, pieces } = await chat.streamed({});
      equal(chat.text(said), GREETING);
      equal(pieces.join(""), GREETING);
      check(pieces.length > 1, "one piece");
      check(tokens > 0, "no usage");
    },
    "tool loop": async () => has((await loop(open(), LOOK("Oslo"))).text, weather("Oslo")),
    "streamed tool loop": async () =>
      has((await loop(open(), LOOK("Oslo"), "streamed")).text, weather("Oslo")),
    "parallel calls": async () => {
      for (const way of ["whole", "streamed"]) {
        const { text, seen } = await loop(open(), LOOK("Oslo and Rome"), way);
        equal(seen.map(({ input }) => input.city).join(), "Oslo,Rome");
        has(text, weather("Oslo"));
        has(text, weather("Rome"));
      }
    },
    "image in a tool result": async () => has((await loop(open(), PHOTO)).text, PICTURE),
    "eight turns": async () => {
      eighth.whole = await eightTurns(open(), "whole");
      eighth.streamed = await eightTurns(open(), "streamed");
    },
    "state returned": async () => has(eighth.whole, KEPT),
    "state returned, streamed": async () => has(eighth.streamed, KEPT),
    "loop of the SDK": async () => {
      if (!Client.prototype.ownLoop) throw new NotApplicable("the SDK has none");
      const answer = await open().ownLoop(LOOK("Oslo and Rome"));
      has(answer, weather("Rome"));
      has(answer, KEPT);
    },
    "kept responses": async () => {
      if (!Client.prototype.kept) throw new NotApplicable("only Responses has them");
      const answer = await open().kept();
      has(answer, weather("Rome"));
      has(answer, KEPT);
    },
    "structured output": async () => {
      for (const way of ["whole", "streamed"]) {
        const chat = open();
        chat.user(JOKE);
        const { said } = await chat[way](chat.structured());
        equal(typeof JSON.parse(chat.text(said)).setup, "string");
      }
    },
    "error 401": async () => {
      const error = await ask(SAY, {}, "il_wrong");
      equal(error.status, Client === Gemini ? 400 : 401); // Google's own status for a wrong key
    },
    "error 404": async () => equal((await ask(SAY, { model: "no-such-model" })).status, 404),
    "error 400": async () => {
      const error = await ask("[fail 400]");
      equal(error.status, 400);
      has(error.message, "refuses this request");
    },
    "context overflow": async () => open().overflow(await ask("[fail overflow]")),
    "error 429": async () => {
      const error = await ask("[fail 429]");
      await afterRateLimit();
      equal(error.status, 429);
      if (Client !== Gemini) check(Number(error.headers.get("retry-after")) > 0, "no retry-after");
    },
  };
}

await report((upstream) =>
  [Chat, Responses, Messages, Gemini].map((Client) => ({
    client: Client.client,
    package: Client.package,
    features: features(Client, upstream),
  })),
);
