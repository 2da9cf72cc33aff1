// pi.mjs FOLDER FILE [AFTER]: opens a copy of a session with pi's own session manager, as it is installed in FOLDER, and prints the
// context that pi builds, as its providers get it; with AFTER, that file gets a turn of pi's own first. Ends with 3 where pi refuses the file, or begins a new session in it.
// pi.mjs FOLDER --make: has that manager make sessions in REFEREES_MADE, and prints a name and the file of each, as made.py wants it.
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, file, after] = process.argv.slice(2);
// The package has had two names, of which the second is the newer, and one of its files two places.
const names = ["@earendil-works", "@mariozechner"].map((name) => join(folder, "node_modules", name));
const find = (...paths) =>
  names.flatMap((name) => paths.map((path) => join(name, `${path}.js`))).find((path) => existsSync(path));
const load = (...paths) => import(pathToFileURL(find(...paths)).href);
const { SessionManager } = await load("pi-coding-agent/dist/core/session-manager");
const { convertToLlm } = await load("pi-coding-agent/dist/core/messages");
const { transformMessages } = await load("pi-ai/dist/providers/transform-messages", "pi-ai/dist/api/transform-messages");

// Since 0.87 a message of the system has sections.
const prompts = find("pi-ai/dist/utils/text") ? await load("pi-ai/dist/utils/text") : {};

const digest = (words) => createHash("sha256").update(words).digest("hex").slice(0, 16);

function text(role, words) {
  words = words.trim();
  if (words === "") return [];
  return [`${role} text ${digest(words)} ${[...words.split(/\s+/).join(" ")].slice(0, 60).join("")}`];
}

function block(role, given) {
  if (given.type === "text") return text(role, given.text);
  if (given.type === "toolCall") return [`assistant call ${given.id}`];
  if (given.type === "image") return [`${role} image`];
  return [];
}

// Reasoning would become text for another model, and is not compared.
function converted(message) {
  return convertToLlm([message]).map((sent) =>
    sent.role === "assistant" ? { ...sent, content: sent.content.filter((given) => given.type !== "thinking") } : sent,
  );
}

function parts(sent, at) {
  if (sent.role === "toolResult") {
    const words = sent.content.map((given) => given.text ?? "").join("");
    return [`tool result ${digest(words.trim())} ${sent.toolCallId}`];
  }
  if (sent.role === "system" && prompts.getSystemMessageText) {
    const render = (at > 0 && prompts.renderSystemMessageUpdate) || prompts.getSystemMessageText;
    return text("system", render(sent));
  }
  if (typeof sent.content === "string") return text(sent.role, sent.content);
  return sent.content.flatMap((given) => block(sent.role, given));
}

function refuse(why) {
  console.error(why);
  rmSync(work, { recursive: true });
  process.exit(3);
}

const words = (text) => [{ type: "text", text }];

function ask(session, said) {
  return session.appendMessage({ role: "user", content: words(said), timestamp: Date.now() });
}

function answer(session, content, stopReason = "stop") {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  const usage = { input: 10, output: 3, cacheRead: 0, cacheWrite: 0, totalTokens: 13, cost };
  const said = { api: "mock", provider: "mock", model: "mock", usage, stopReason };
  return session.appendMessage({ role: "assistant", content, ...said, timestamp: Date.now() });
}

function write(path) {
  const session = SessionManager.open(path);
  ask(session, "pi goes on.");
  answer(session, words("Mock answer."));
}

function make(folder) {
  const session = SessionManager.create(folder, folder);
  const lay = (state) => {
    const file = join(folder, `${state}-made.jsonl`);
    copyFileSync(session.getSessionFile(), file);
    console.log(JSON.stringify([state, file]));
  };
  if (session.appendContextEdit) {
    const tool = { name: "bash", description: "Runs a command", parameters: { type: "object" } };
    const prompt = { content: "You are a gardener.", sections: { rules: "Be brief.", place: "A shed.", tools: "A rake." }, toolsAdded: [tool] };
    session.appendMessage({ role: "system", ...prompt, timestamp: Date.now() });
  }
  const look = (id) => {
    answer(session, [{ type: "toolCall", id, name: "bash", arguments: { command: "echo a rake" } }], "toolUse");
    const result = { role: "toolResult", toolCallId: id, toolName: "bash", content: words("a rake\n".repeat(600)), isError: false };
    const found = session.appendMessage({ ...result, timestamp: Date.now() });
    answer(session, words("Mock answer."));
    return found;
  };
  ask(session, "What is in the shed?");
  look("call_0");
  ask(session, "What stands next to it?");
  const first = answer(session, words("Mock answer."));
  const asked = ask(session, "Look again.");
  const found = look("call_1");
  if (session.appendContextEdit) {
    session.appendMessage({ role: "system", content: "", sections: { rules: "Be long.", tools: null }, timestamp: Date.now() });
    session.appendContextEdit(found, { content: "a rake" });
    session.appendContextEdit(asked, { content: words("Look once more.") });
    lay("replaced");
  }
  session.appendSessionInfo?.("The shed");
  session.appendLabelChange(asked, "a rake");
  lay("said");
  session.branch(first);
  ask(session, "And in the garden?");
  answer(session, words("Mock answer."));
  lay("gone-back");
  session.branchWithSummary(first, "A rake was found.");
  ask(session, "And in the garden?");
  const last = answer(session, words("Mock answer."));
  lay("gone-back-with-summary");
  session.appendCompaction("The shed was looked at.", last, 1000);
  lay("compacted");
  const after = ask(session, "And behind it?");
  answer(session, words("Mock answer."));
  lay("compacted-and-said");
  if (session.appendContextEdit) {
    session.appendContextEdit(after, null);
    lay("edited");
  }
  session.createBranchedSession(last);
  lay("forked");
}

// pi rewrites files of older versions as it opens them.
if (file === "--make") {
  make(process.env.REFEREES_MADE);
  process.exit();
}
const work = mkdtempSync(join(process.env.REFEREES_WORK ?? tmpdir(), "pi-"));
try {
  if (after) write(after);
  const copy = join(work, basename(file));
  copyFileSync(file, copy);
  let session;
  try {
    session = SessionManager.open(copy);
  } catch (error) {
    refuse(error.message);
  }
  if (!readFileSync(file, "utf8").includes(session.getSessionId())) refuse("it begins a new session in the file");
  const { messages } = session.buildSessionContext();
  const model = messages.findLast((message) => message.role === "assistant") ?? {};
  const sent = transformMessages(messages.flatMap(converted), { ...model, id: model.model, input: ["text", "image"] });
  for (const part of sent.flatMap(parts)) console.log(JSON.stringify(part));
} finally {
  rmSync(work, { recursive: true });
}
