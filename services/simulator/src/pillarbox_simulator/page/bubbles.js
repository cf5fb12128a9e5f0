/* One message as people see it. */

import { clock, make } from "./api.js";

const TAGS = {
  bold: "strong", italic: "em", underline: "u", strikethrough: "s", code: "code", pre: "pre", blockquote: "blockquote",
};
const MEDIA = ["photo", "document", "video", "audio", "voice", "animation", "video_note", "sticker"];
const PLAIN = ["location", "venue", "contact", "poll", "dice", "game", "invoice", "checklist"];

export function bubble(message, bot, press) {
  const mine = message.from.id !== bot.bot_id;
  const body = make("div", { className: "body" },
    mine && message.chat.type !== "private" ? make("span", { className: "writer" }, message.from.first_name) : null,
    message.reply_to_message ? make("span", { className: "quote" }, summary(message.reply_to_message)) : null,
    media(message, bot),
    ...formatted(message.text ?? message.caption ?? "", message.entities ?? message.caption_entities ?? []),
    make("span", { className: "meta" }, message.edit_date ? "edited " : "", time(message.edit_date ?? message.date)),
  );
  const rows = message.reply_markup?.inline_keyboard ?? [];
  return make("li", { className: "bubble", data: { from: mine ? "user" : "bot", id: message.message_id } },
    make("span", { className: "unseen" }, mine ? "You: " : `${bot.name}: `),
    body,
    rows.length ? make("div", { className: "buttons" }, ...rows.map((row) => buttons(row, message, press))) : null,
  );
}

export function summary(message) {
  const kind = [...MEDIA, ...PLAIN].find((name) => message[name] !== undefined);
  return message.text ?? message.caption ?? (kind ? kind.replace("_", " ") : "message");
}

function time(seconds) {
  return make("time", { dateTime: new Date(seconds * 1000).toISOString() }, clock(seconds));
}

function buttons(row, message, press) {
  return make("div", { className: "row" }, ...row.map((button) => {
    if (button.url) return make("a", { href: safe(button.url), rel: "noreferrer", target: "_blank" }, button.text);
    const element = make("button", { type: "button" }, button.text);
    element.disabled = button.callback_data === undefined;
    element.addEventListener("click", () => press(message, button.callback_data, element));
    return element;
  }));
}

const safe = (url) => (/^(https?|tg|mailto):/i.test(url) ? url : "#");

function media(message, bot) {
  const kind = MEDIA.find((name) => message[name] !== undefined);
  if (!kind) {
    const plain = PLAIN.find((name) => message[name] !== undefined);
    return plain ? make("span", { className: "file" }, plain === "dice" ? `${message.dice.emoji} ${message.dice.value}` : plain) : null;
  }
  const file = kind === "photo" ? message.photo.at(-1) : message[kind];
  const name = make("span", { className: "file" }, `${kind.replace("_", " ")}${file.file_name ? `: ${file.file_name}` : ""}`);
  if (kind !== "photo" || !file.file_size) return name;
  const image = make("img", { src: `_ctl/files/${bot.bot_id}/${encodeURIComponent(file.file_id)}`, alt: file.file_name ?? "photo" });
  image.addEventListener("error", () => image.replaceWith(name));
  return image;
}

/* Entities count in UTF-16 units, as strings do here. The outermost comes first. */
function formatted(text, entities, from = 0, to = text.length) {
  const parts = [];
  let position = from;
  const inside = entities.filter((e) => e.offset >= from && e.offset + e.length <= to);
  inside.forEach((entity, index) => {
    const end = entity.offset + entity.length;
    if (entity.offset < position) return;
    parts.push(text.slice(position, entity.offset), wrapped(entity, formatted(text, inside.slice(index + 1), entity.offset, end)));
    position = end;
  });
  return [...parts, text.slice(position, to)];
}

function wrapped(entity, children) {
  if (entity.type === "text_link") return make("a", { href: safe(entity.url), rel: "noreferrer", target: "_blank" }, ...children);
  if (entity.type === "spoiler") return make("span", { className: "spoiler", tabIndex: 0 }, ...children);
  return make(TAGS[entity.type] ?? "span", {}, ...children);
}
