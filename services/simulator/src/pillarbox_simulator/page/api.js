/* The control plane, and small things that every part of the page needs. */

export async function ctl(method, path, body) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  const answer = await fetch(`_ctl/${path}`, { method, headers, body: body && JSON.stringify(body) }).catch(() => {
    throw new Error("The simulator does not answer. Is it running?");
  });
  const reply = await answer.json();
  if (!answer.ok) throw new Error(reply.error ?? `status ${answer.status}`);
  return reply;
}

export const byId = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const { data = {}, aria = {}, ...rest } = properties;
  const element = Object.assign(document.createElement(tag), rest);
  for (const [name, value] of Object.entries(data)) element.dataset[name] = value;
  for (const [name, value] of Object.entries(aria)) element.setAttribute(`aria-${name}`, value);
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

let fading;

export function toast(text) {
  const box = byId("toast");
  box.textContent = text;
  box.classList.add("shown");
  clearTimeout(fading);
  fading = setTimeout(() => box.classList.remove("shown"), 3500);
}

/* Whatever a person did that failed is said, in the words of the control plane. */
export const said = (act) => async (...given) => {
  try {
    return await act(...given);
  } catch (error) {
    toast(error.message);
    return undefined;
  }
};

export function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}
