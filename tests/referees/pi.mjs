// pi.mjs FOLDER FILE: opens a copy of a session with pi's own session manager, as it is installed in FOLDER, and prints the
// context that pi builds, as its providers get it. What pi puts around a summary is left out: the summary itself is compared.
import { createHash } from "node:crypto";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, file] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(join(folder, "node_modules/@mariozechner", `${name}.js`)).href);
const { SessionManager } = await load("pi-coding-agent/dist/core/session-manager");
const { convertToLlm } = await load("pi-coding-agent/dist/core/messages");
const { transformMessages } = await load("pi-ai/dist/providers/transform-messages");

function text(role, words) {
  words = words.trim();
  if (words === "") return [];
  const digest = createHash("sha256").update(words).digest("hex").slice(0, 16);
  return [`${role} text ${digest} ${[...words.split(/\s+/).join(" ")].slice(0, 60).join("")}`];
}

function block(role, given) {
  if (given.type === "text") return text(role, given.text);
  if (given.type === "toolCall") return [`assistant call ${given.id}`];
  if (given.type === "image") return [`${role} image`];
  return [];
}

// A summary stands alone; reasoning would become text for another model, and is not compared.
function converted(message) {
  if (message.role === "compactionSummary" || message.role === "branchSummary") {
    return [{ role: "user", content: message.summary }];
  }
  return convertToLlm([message]).map((sent) =>
    sent.role === "assistant" ? { ...sent, content: sent.content.filter((given) => given.type !== "thinking") } : sent,
  );
}

function parts(sent) {
  if (sent.role === "toolResult") return [`tool result ${sent.toolCallId}`];
  if (typeof sent.content === "string") return text(sent.role, sent.content);
  return sent.content.flatMap((given) => block(sent.role, given));
}

// pi rewrites files of older versions as it opens them.
const work = mkdtempSync(join(process.env.REFEREES_WORK ?? tmpdir(), "pi-"));
try {
  const copy = join(work, basename(file));
  copyFileSync(file, copy);
  const { messages } = SessionManager.open(copy).buildSessionContext();
  const model = messages.findLast((message) => message.role === "assistant") ?? {};
  const sent = transformMessages(messages.flatMap(converted), { ...model, id: model.model, input: ["text", "image"] });
  for (const part of sent.flatMap(parts)) console.log(JSON.stringify(part));
} finally {
  rmSync(work, { recursive: true });
}
