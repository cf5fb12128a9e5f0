/* A person picks a bot and a chat, writes, presses, and sees what the bot does. State lives in the simulator. */

import { byId, clock, ctl, make, said, toast } from "./api.js";
import { bubble, summary } from "./bubbles.js";
import * as faults from "./faults.js";

const FIRST = { chat_id: 1001, name: "Ada" };
const SHOWN = 200;
const PRESS_ENDS = 15_000;

const state = { bots: [], bot: null, chats: new Map(), chat: null, waited: 0 };

/* ---- bots */

const bots = said(async () => {
  state.bots = (await ctl("GET", "bots")).bots;
  byId("bot-choice").hidden = state.bots.length < 1;
  byId("bot").replaceChildren(...state.bots.map((bot) => make("option", { value: bot.bot_id }, `${bot.name}`)));
  const [wantedBot, wantedChat] = location.hash.slice(1).split("/").map(Number);
  const bot = state.bots.find(({ bot_id }) => bot_id === (state.bot?.bot_id ?? wantedBot)) ?? state.bots[0];
  if (!bot) return waiting();
  return chooseBot(bot, state.chat ?? wantedChat);
});

function waiting() {
  byId("no-bots").hidden = false;
  byId("new-chat-box").hidden = true;
  byId("scroll").hidden = true;
  byId("below").hidden = true;
  byId("setting").textContent = `TELEGRAM_API_BASE=${location.origin}`;
}

async function chooseBot(bot, chatId) {
  state.bot = bot;
  byId("bot").value = bot.bot_id;
  faults.setBot(bot.bot_id);
  byId("no-bots").hidden = true;
  byId("new-chat-box").hidden = false;
  byId("scroll").hidden = false;
  await chats();
  if (state.chats.size === 0) await open(FIRST.chat_id, FIRST.name);
  else await choose(state.chats.has(chatId) ? chatId : sorted()[0].chat_id);
  byId("below").hidden = false;
}

/* ---- chats */

async function chats() {
  const { chats: known } = await ctl("GET", `chats?bot_id=${state.bot.bot_id}`);
  const fresh = new Set([...state.chats.values()].filter(({ fresh }) => fresh).map(({ chat_id }) => chat_id));
  state.chats = new Map(known.map((chat) => [chat.chat_id, { ...chat, fresh: fresh.has(chat.chat_id) }]));
  list();
}

const sorted = () => [...state.chats.values()].sort((a, b) => (b.last?.date ?? 0) - (a.last?.date ?? 0));

function list() {
  byId("chats").replaceChildren(...sorted().slice(0, SHOWN).map((chat) => {
    const button = make("button", { type: "button", data: { chat: chat.chat_id } },
      make("span", { className: "face", ariaHidden: "true", data: { tint: Math.abs(chat.chat_id) % 5 } }, chat.name.slice(0, 1).toUpperCase()),
      make("span", { className: "chat-title" }, chat.name),
      chat.fresh ? make("span", { className: "fresh", role: "img", aria: { label: "new messages" } }) : null,
      make("span", { className: "chat-last" }, chat.last ? summary(chat.last) : ""));
    if (chat.chat_id === state.chat) button.setAttribute("aria-current", "true");
    button.addEventListener("click", said(() => choose(chat.chat_id)));
    return make("li", {}, button);
  }));
  byId("new-id").placeholder = String(freeId());
  if (!byId("new-name").value) byId("new-id").value = freeId();
}

const freeId = () => Math.max(FIRST.chat_id - 1, ...[...state.chats.keys()].filter((id) => id > 1000 && id < 1e6)) + 1;

async function open(chat_id, name) {
  const chat = await ctl("POST", "chats", { bot_id: state.bot.bot_id, chat_id, name });
  state.chats.set(chat.chat_id, { ...state.chats.get(chat.chat_id), ...chat });
  await choose(chat.chat_id);
}

async function choose(chatId) {
  const { messages, keyboard } = await ctl("GET", `history?bot_id=${state.bot.bot_id}&chat_id=${chatId}`);
  state.chat = chatId;
  const chat = state.chats.get(chatId);
  chat.fresh = false;
  history.replaceState(null, "", `#${state.bot.bot_id}/${chatId}`);
  document.body.dataset.view = "chat";
  byId("chat-name").textContent = chat.name;
  about();
  byId("messages").replaceChildren(...messages.slice(-SHOWN).map(drawn));
  byId("empty").hidden = messages.length > 0;
  lay(keyboard);
  list();
  toEnd();
}

function about(text) {
  const chat = state.chats.get(state.chat);
  byId("chat-about").textContent = text ?? `${chat.type === "private" ? "person" : chat.type} ${chat.chat_id}, writing to ${state.bot.name}`;
}

/* ---- messages */

const drawn = (message) => bubble(message, state.bot, press);

/* The column runs from its end, where scrollTop is 0: so the newest message stays in view when the room shrinks. */
const atEnd = () => byId("scroll").scrollTop > -120;
const toEnd = () => { byId("scroll").scrollTop = 0; };

function arrived(message) {
  const follow = atEnd();
  const before = byId("messages").querySelector(`[data-id="${message.message_id}"]`);
  const element = drawn(message);
  if (before) {
    element.classList.add("changed");
    before.replaceWith(element);
  } else {
    byId("messages").append(element);
    byId("empty").hidden = true;
    if (message.from.id === state.bot.bot_id) about();
  }
  if (follow) toEnd();
}

function gone(messageId) {
  const element = byId("messages").querySelector(`[data-id="${messageId}"]`);
  element?.replaceWith(make("li", { className: "gone" }, "A message was deleted"));
}

const write = said(async (text) => {
  const asked = { bot_id: state.bot.bot_id, chat_id: state.chat, text };
  const { update_id } = await ctl("POST", "messages", asked);
  toEnd();
  if (update_id === null) toast("The bot does not want messages: see its allowed_updates.");
  return true;
});

const press = said(async (message, data, button) => {
  button.setAttribute("aria-busy", "true");
  setTimeout(() => button.removeAttribute("aria-busy"), PRESS_ENDS);
  const asked = { bot_id: state.bot.bot_id, chat_id: state.chat, message_id: message.message_id, data };
  const { update_id } = await ctl("POST", "callbacks", asked);
  if (update_id === null) toast("The bot does not want button presses: see its allowed_updates.");
});

function answered({ text, show_alert }) {
  for (const button of document.querySelectorAll(".buttons [aria-busy]")) button.removeAttribute("aria-busy");
  if (!text) return;
  if (!show_alert) return toast(text);
  byId("alert-text").textContent = text;
  byId("alert").showModal();
}

function lay(keyboard) {
  const rows = keyboard?.keyboard ?? [];
  byId("keyboard").hidden = rows.length === 0;
  byId("keyboard").replaceChildren(...rows.map((row) => make("div", { className: "row" }, ...row.map((key) => {
    const text = typeof key === "string" ? key : key.text;
    const button = make("button", { type: "button" }, text);
    button.addEventListener("click", () => {
      write(text);
      if (keyboard.one_time_keyboard) lay(null);
    });
    return button;
  }))));
}

/* ---- what happens live */

const here = (botId, chatId) => state.bot?.bot_id === botId && state.chat === chatId;

const HAPPENS = {
  bot: () => bots(),
  reset: () => { state.chat = null; return bots(); },
  faults: ([, rules]) => faults.show(rules),
  chat: ([botId, chatId, name]) => {
    if (state.bot?.bot_id !== botId) return;
    const known = state.chats.get(chatId) ?? { chat_id: chatId, type: chatId > 0 ? "private" : "group", last: null };
    state.chats.set(chatId, { ...known, name });
    if (here(botId, chatId)) byId("chat-name").textContent = name;
    list();
  },
  message: ([botId, chatId, message]) => {
    const chat = state.bot?.bot_id === botId ? state.chats.get(chatId) : null;
    if (!chat) return;
    if (!chat.last || message.message_id >= chat.last.message_id) chat.last = message;
    if (here(botId, chatId)) arrived(message);
    else chat.fresh = true;
    later();
  },
  deleted: ([botId, chatId, messageId]) => here(botId, chatId) && gone(messageId),
  keyboard: ([botId, chatId, keyboard]) => here(botId, chatId) && lay(keyboard),
  answered: ([botId, chatId, told]) => here(botId, chatId) && answered(told),
  action: ([botId, chatId, action]) => {
    if (!here(botId, chatId)) return;
    about(`${state.bot.name} is ${action === "typing" ? "typing" : action.replace("_", "ing ")}…`);
    setTimeout(about, 5000);
  },
  behind: () => bots(),
};

/* Many messages in one frame redraw the list once. */
let redraw = 0;
function later() {
  redraw ||= requestAnimationFrame(() => { redraw = 0; list(); });
}

function listen() {
  const feed = new EventSource("_ctl/events");
  feed.addEventListener("open", () => {
    link("live", "Live");
    bots();
    said(async () => faults.show((await ctl("GET", "faults")).faults))();
  });
  feed.addEventListener("error", () => link("waiting", "Reconnecting…"));
  for (const [name, happens] of Object.entries(HAPPENS)) {
    feed.addEventListener(name, (event) => happens(JSON.parse(event.data)));
  }
}

function link(status, text) {
  byId("link").dataset.state = status;
  byId("link").textContent = text;
}

/* What waits for the bot is told when it still waits at the second look. */
async function watch() {
  if (!state.bot || document.hidden) return;
  const { bots: now } = await ctl("GET", "bots");
  const webhook = now.find(({ bot_id }) => bot_id === state.bot.bot_id)?.webhook;
  const count = webhook?.pending_update_count ?? 0;
  const notice = byId("notice");
  notice.hidden = !(count && state.waited);
  state.waited = count;
  if (notice.hidden) return;
  const why = webhook.url
    ? webhook.last_error_message && ` Last answer at ${clock(webhook.last_error_date)}: ${webhook.last_error_message}.`
    : " It has no webhook, and no getUpdates has confirmed more.";
  const text = `${count === 1 ? "1 update waits" : `${count} updates wait`} for the bot.${why || ""}`;
  if (notice.textContent !== text) notice.textContent = text;
}

/* ---- what people do */

function build() {
  faults.build();
  byId("composer").addEventListener("submit", async (event) => {
    event.preventDefault();
    const box = byId("message");
    const text = box.value.trim();
    if (!text) return;
    box.value = "";
    if (!await write(text)) box.value ||= text;
    box.focus();
  });
  byId("message").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    byId("composer").requestSubmit();
  });
  byId("start").addEventListener("click", () => write("/start"));
  byId("bot").addEventListener("change", said((event) => {
    state.chats.clear();
    return chooseBot(state.bots.find(({ bot_id }) => bot_id === Number(event.target.value)));
  }));
  byId("new-chat").addEventListener("submit", said(async (event) => {
    event.preventDefault();
    await open(Number(byId("new-id").value), byId("new-name").value.trim());
    byId("new-chat").reset();
    byId("new-chat-box").open = false;
    list();
    byId("message").focus();
  }));
  byId("to-chats").addEventListener("click", () => {
    document.body.dataset.view = "chats";
    byId("chats").querySelector("button")?.focus();
  });
  setInterval(() => watch().catch(() => {}), 2500);
}

build();
listen();
