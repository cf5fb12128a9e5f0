// Queues messages from Node, without any package: node notify.mjs < orders.json, with REDIS_URL in the environment.
// orders.json is a list of {"chat": 42, "order": 17, "chart": "<base64 of a PNG>"}; the chart may be left out.
import { randomUUID } from "node:crypto";
import { createConnection } from "node:net";
import { text } from "node:stream/consumers";

const door = process.env.REDIS_MESSAGES_KEY ?? "pillarbox:outbound";

/** One command of Redis, and its answer as text. */
function redis(socket, ...words) {
  const parts = words.map((word) => (Buffer.isBuffer(word) ? word : Buffer.from(String(word))));
  socket.write(`*${parts.length}\r\n`);
  for (const part of parts) socket.write(Buffer.concat([Buffer.from(`$${part.length}\r\n`), part, Buffer.from("\r\n")]));
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.once("data", (answer) => {
      socket.off("error", reject);
      answer[0] === 0x2d ? reject(new Error(answer.toString())) : resolve(answer.toString().trim());
    });
  });
}

async function connect(url) {
  const { hostname, port, username, password, pathname } = new URL(url);
  const socket = createConnection({ host: hostname, port: Number(port || 6379) });
  if (password) await redis(socket, "AUTH", ...(username ? [username] : []), decodeURIComponent(password));
  if (pathname.length > 1) await redis(socket, "SELECT", pathname.slice(1));
  return socket;
}

function message({ chat, order }) {
  return {
    v: 1,
    id: `order-${order}`, // pushed again, it is sent once
    expires_at: Math.floor(Date.now() / 1000) + 3600,
    method: "sendMessage",
    params: {
      chat_id: chat,
      text: `Order <b>${order}</b> is on its way 🚚`,
      parse_mode: "HTML",
      reply_markup: { inline_keyboard: [[{ text: "Where is it?", callback_data: `where:${order}` }]] },
    },
  };
}

function photo({ chat, order }, id) {
  return {
    method: "sendPhoto",
    params: { chat_id: chat, photo: "attach://chart", caption: `Order ${order}` },
    files: { chart: { id, filename: `${order}.png`, once: true } },
    on_doubt: "drop",
  };
}

const socket = await connect(process.env.REDIS_URL);
for (const order of JSON.parse(await text(process.stdin))) {
  await redis(socket, "RPUSH", door, JSON.stringify(message(order)));
  if (order.chart) {
    const id = randomUUID();
    await redis(socket, "SET", `${door}:file:${id}`, Buffer.from(order.chart, "base64"), "EX", 86400);
    await redis(socket, "RPUSH", door, JSON.stringify(photo(order, id)));
  }
}
socket.end();
