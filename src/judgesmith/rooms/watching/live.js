"use strict";
// Each look is a whole page without scripts, in which the server has escaped every text; the policy of this page lets no
// script run but this file.
const policy = window.trustedTypes ? trustedTypes.createPolicy("page", {createHTML: words => words}) : {createHTML: words => words};
const SECONDS = 2;
const at = id => document.getElementById(id);
const warn = words => { at("alert").textContent = words; at("alert").hidden = !words };
let mark = "", shown = null;

function where() {
  const [token, ...rest] = location.hash.slice(1).split("&");
  return [token, rest.join("&")];
}

async function look() {
  const [token, view] = where(), moved = view !== shown;
  const headers = {"X-Token": token};
  if (mark && !moved) headers["If-None-Match"] = mark;
  let answer;
  try { answer = await fetch(`view?${view}`, {headers}) }
  catch { warn("The server does not answer. Start the command again, and open the address that it prints."); return }
  if (view !== where()[1]) return;
  if (answer.status === 304) { warn(""); return }
  if (!answer.ok) { warn(answer.status < 500 ? (await answer.json()).error : "The server failed; its terminal says why."); shown = view; mark = ""; return }
  warn("");
  mark = answer.headers.get("ETag");
  show(await answer.text(), token, moved);
  if (!moved) at("status").textContent = `Files changed; updated at ${new Date().toLocaleTimeString()}.`;
  else if (shown !== null) { at("status").textContent = ""; scrollTo(0, 0); document.querySelector("h1").focus({preventScroll: true}) }
  shown = view;
}

function show(html, token, moved) {
  const made = new DOMParser().parseFromString(policy.createHTML(html), "text/html"), old = document.activeElement;
  const opened = moved ? [] : [...document.querySelectorAll("details[open] > summary")].map(one => one.textContent);
  const focused = !moved && old.closest("#page") ? old.getAttribute("href") || old.id : "";
  document.title = made.title;
  at("style").textContent = [...made.querySelectorAll("style")].map(one => one.textContent).join("\n");
  made.querySelector("h1").tabIndex = -1;
  for (const link of made.querySelectorAll("a[href^='?']")) link.setAttribute("href", `#${token}&${link.getAttribute("href").slice(1)}`);
  at("page").replaceChildren(...made.body.childNodes);
  for (const fold of document.querySelectorAll("details")) if (opened.includes(fold.querySelector("summary").textContent)) fold.open = true;
  if (focused) [...document.querySelectorAll("#page a, #page [id]")].find(one => [one.getAttribute("href"), one.id].includes(focused))?.focus({preventScroll: true});
}

// A link to a place of this look must not take the token out of the address.
addEventListener("click", event => {
  const link = event.target.closest?.("a[href^='#']"), name = link && decodeURIComponent(link.getAttribute("href").slice(1));
  if (!link || name.startsWith(where()[0])) return;
  event.preventDefault();
  at(name)?.scrollIntoView();
});
addEventListener("hashchange", look);
look();
setInterval(() => { if (!document.hidden) look() }, 1000 * SECONDS);
document.addEventListener("visibilitychange", () => { if (!document.hidden) look() });
