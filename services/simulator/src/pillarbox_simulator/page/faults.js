/* The panel that makes Telegram misbehave. */

import { byId, ctl, make, said } from "./api.js";

const WRITES = ["send*", "edit*", "copy*", "forward*", "delete*", "answer*"];
const SWITCHES = [
  { id: "page-429", kind: "429", retry_after: 5, title: "Telegram answers 429", text: "Too many requests: come back in 5 seconds." },
  { id: "page-hang", kind: "hang", title: "Telegram hangs", text: "Calls are taken and never answered." },
  { id: "page-502", kind: "502", title: "Bad gateway", text: "Every call gets a 502 page, as in an outage." },
  { id: "page-lost", kind: "reset_after", title: "Answers get lost", text: "The message arrives, its sender never learns it: one copy more may come." },
  { id: "page-403", kind: "403", title: "The user blocked the bot", text: "Every send is refused for good." },
];
const ENDS = { 0: "no answer" };
const PERIOD = 1500;

let rules = [];
let bot = null;
let timer;

export function setBot(id) {
  bot = id;
}

export function show(shown) {
  rules = shown;
  for (const { id } of SWITCHES) {
    const rule = rules.find((one) => one.id === id);
    const row = byId(id);
    row.checked = rule !== undefined;
    row.closest(".switch").querySelector(".hits").textContent = rule?.hits ? ` · hit ${rule.hits}` : "";
  }
  const others = rules.filter((rule) => !SWITCHES.some(({ id }) => id === rule.id)).length;
  byId("other-faults").hidden = others === 0;
  byId("other-faults").textContent = `${others} more set by a test or by hand.`;
  byId("all-off").disabled = rules.length === 0;
  byId("fault-count").hidden = rules.length === 0;
  byId("fault-count").textContent = `${rules.length} on`;
}

const bare = ({ seen, hits, ...rule }) => rule;

const turn = said(async (choice, on) => {
  const { title, text, ...rule } = choice;
  const kept = rules.filter(({ id }) => id !== choice.id).map(bare);
  show((await ctl("PUT", "faults", { faults: on ? [...kept, { ...rule, method: WRITES }] : kept })).faults);
});

async function refresh() {
  show((await ctl("GET", "faults")).faults);
  if (bot === null) return;
  const { calls } = await ctl("GET", `ledger?bot_id=${bot}&limit=30`);
  const told = calls.filter(({ method }) => method !== "getUpdates").slice(-12).reverse();
  byId("calls").replaceChildren(...told.map(row));
}

function row(call) {
  const bad = call.status !== 200;
  const text = ENDS[call.status] ?? String(call.status);
  return make("li", {},
    make("time", {}, new Date(call.at * 1000).toLocaleTimeString()),
    make("span", { className: "what" }, call.method),
    make("span", { className: "ended", data: bad ? { bad: "" } : {} }, call.effect && bad ? `${text}, but arrived` : text),
  );
}

function toggle(open) {
  byId("faults").hidden = !open;
  byId("open-faults").setAttribute("aria-expanded", String(open));
  clearInterval(timer);
  if (!open) return;
  said(refresh)();
  timer = setInterval(() => refresh().catch(() => {}), PERIOD);
}

export function build() {
  byId("switches").append(...SWITCHES.map((choice) => {
    const input = make("input", { type: "checkbox", id: choice.id });
    input.setAttribute("role", "switch");
    input.addEventListener("change", () => turn(choice, input.checked));
    return make("label", { className: "switch" },
      make("strong", {}, choice.title), input,
      make("small", {}, choice.text, make("span", { className: "hits" })));
  }));
  byId("all-off").addEventListener("click", said(async () => show((await ctl("DELETE", "faults")).faults)));
  byId("open-faults").addEventListener("click", () => {
    const open = byId("faults").hidden;
    toggle(open);
    if (open) byId("close-faults").focus();
  });
  byId("close-faults").addEventListener("click", () => {
    toggle(false);
    byId("open-faults").focus();
  });
  byId("faults").addEventListener("keydown", (event) => event.key === "Escape" && byId("close-faults").click());
}
