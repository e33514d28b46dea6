"use strict";
// Texts are strangers': they reach the page through textContent alone, which makes no markup.
const at = id => document.getElementById(id);
const token = location.hash.slice(1);
let task, rater, row = null, given = {}, active = 0, busy = false, singleKeys = true;

function el(tag, about = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(about)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...inside.filter(one => one !== null));
  return made;
}
const kbd = key => el("kbd", {"aria-hidden": "true"}, key.length === 1 ? key.toUpperCase() : key);
const tell = words => { at("status").textContent = words };
const warn = words => { at("alert").textContent = words || ""; at("alert").hidden = !words };
const only = (...ids) => { for (const id of ["top", "who", "desk", "end"]) at(id).hidden = !ids.includes(id) };

async function ask(path, body) {
  const headers = {"X-Token": token, ...(body && {"Content-Type": "application/json"})};
  const answer = await fetch(path, {method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body)});
  const told = answer.headers.get("Content-Type") === "application/json" ? await answer.json() : {error: "The server failed; its terminal says why."};
  return {status: answer.status, told};
}

// An answer is sent until it is confirmed, always as the same request, so that it is kept once.
async function send(event, words) {
  if (busy) return;
  busy = true;
  const whole = {...event, rater, request: crypto.randomUUID()};
  for (let tries = 0; ; tries++) {
    let answer;
    try { answer = await ask("api/events", whole) } catch { answer = null }
    if (answer && answer.status !== 503) {
      busy = false;
      if (answer.status === 200) { warn(""); forget(); show(answer.told, words) }
      else if (answer.status === 409) { forget(); show(answer.told, ""); warn(`${answer.told.error} What was saved there is shown: give it again to keep it, or another answer to change it.`) }
      else warn(answer.told.error);
      return;
    }
    warn(answer ? answer.told.error : "Not saved yet: the server does not answer. Start the same command again; this page then goes on by itself.");
    await new Promise(done => setTimeout(done, 1000));
  }
}
addEventListener("beforeunload", event => { if (busy) event.preventDefault() });

// What is not saved yet outlives a reload of this tab.
const draft = () => sessionStorage.setItem("draft", JSON.stringify({key: row.key, turn: row.turn, answer: given}));
const forget = () => sessionStorage.removeItem("draft");
function drafted() {
  const kept = JSON.parse(sessionStorage.getItem("draft") || "null");
  return kept && kept.key === row.key && kept.turn === row.turn ? kept.answer : null;
}

// Whether the labels decide what they are for, behind the answer: it may take longer than the next row.
async function decide() {
  const {status, told} = await ask("api/decision");
  if (status !== 200) return;
  at("decision").textContent = told.decision.join(". ");
  at("decision").hidden = !told.decision.length;
}

// Rows ---------------------------------------------------------------------------------------------------------------
function show(told, words) {
  row = told.unit;
  at("count").textContent = `${told.done} of ${told.total}`;
  at("bar").max = told.total; at("bar").value = told.done;
  at("undo").disabled = !told.undo; at("skip").disabled = !row;
  at("rater").textContent = rater;
  decide().catch(() => {});
  const left = told.total - told.done;
  tell([words, row ? `${left} left.` : ""].filter(Boolean).join(" "));
  if (!row) {
    only("top", "end");
    at("end-text").textContent = told.total ? `Every row ${task.settling ? "is settled" : "has your answer"}. Undo still takes the last one back. Ctrl-C in the terminal ends the session and writes the export.` : "There are no rows.";
    at("end-title").focus();
    return;
  }
  only("top", "desk");
  given = row.answer || drafted() || (task.kind === "spans" ? {errors: []} : {});
  active = Math.max(0, row.questions.findIndex(question => !(question.name in given)));
  at("place").textContent = `Row ${row.place} of ${told.total}`;
  at("texts").replaceChildren(...parts());
  if (task.kind === "spans") begin();
  ask_();
  scrollTo(0, 0);
  (task.kind === "spans" ? at("output") : at("place")).focus({preventScroll: true});
}

// A text, or the turns of a conversation as bubbles.
const words_ = name => !row.turns[name] ? row.texts[name] : row.turns[name].map(([who, said]) =>
  el("div", {class: `turn ${who.split(" ")[0].toLowerCase()}${who.split(" ")[1] === "calls" ? " call" : ""}`}, el("b", {}, el("bdi", {}, who)), el("p", {dir: "auto"}, said)));

function part(name, text, about = {}) {
  const id = `part-${name}`.replace(/\W+/g, "-");
  return el("section", {class: about.judged ? "part judged" : "part", "aria-labelledby": id},
    el("h3", {id}, name), el("div", {class: "text", dir: "auto", tabindex: "0", role: "group", "aria-labelledby": id, ...about.box}, ...[].concat(text)));
}

function parts() {
  const said = row.said.length ? [table("What raters said", ["Rater", "Answer"], row.said)] : [];
  return [...said, ...texts()];
}
function texts() {
  const made = ["Source", "Context", "Reference"].filter(name => row.texts[name.toLowerCase()]).map(name => part(name, words_(name.toLowerCase())));
  if (task.kind === "preference") {
    made.push(el("div", {class: "two"}, part("A", words_("output_a"), {judged: true}), part("B", words_("output_b"), {judged: true})));
  } else if (task.kind === "spans") {
    made.push(part("Output", "", {judged: true, box: {id: "output", role: "application", "aria-describedby": "how"}}));
  } else made.push(part("Output", words_("output"), {judged: true}));
  if (task.kind === "preference") return made;
  // What is judged stands beside what it is judged by, where there is room.
  const [beside, judged] = [false, true].map(side => made.filter(one => one.classList.contains("judged") === side));
  return [el("div", {class: "sides"}, ...[beside, judged].filter(side => side.length).map(side => el("div", {}, ...side)))];
}

// Questions ----------------------------------------------------------------------------------------------------------
function ask_() {
  const form = at("answers"), several = row.questions.length > 1;
  form.classList.toggle("several", several);
  if (task.kind === "spans") { form.replaceChildren(...marking()); return }
  form.replaceChildren(...row.questions.map((question, place) =>
    el("fieldset", {"aria-current": several && place === active ? "true" : null},
      el("legend", {}, several ? `${question.name}: ${question.text}` : question.text),
      question.choices.length ? el("div", {class: "choices"}, ...inOrder(question.choices).map(choice =>
        el("button", {type: "button", "aria-label": choice.label, "aria-keyshortcuts": choice.key, "aria-pressed": String(given[question.name] === choice.value),
          class: choice.label === choice.key ? "digit" : null, onclick: () => answer(place, choice)}, ...(choice.label === choice.key ? [choice.label] : [kbd(choice.key), ` ${choice.label}`]))))
      : el("div", {class: "row"}, el("input", {class: "number", type: "number", step: "any", min: question.low, max: question.high, required: true,
          "aria-label": `${several ? `${question.name}: a` : "A"} number from ${question.low} to ${question.high}`, value: given[question.name] ?? null, oninput: event => typed(question, event.target)})),
      task.takes_why ? reason(question, several) : null)));
  if (several || task.asks_why || number()) form.append(el("button", {class: "main", id: "save", disabled: !complete()}, kbd("Enter"), " Save"));
  if (several) form.querySelector("[aria-current]").scrollIntoView({block: "nearest"});
  if (number()) setTimeout(() => number().focus());
}
const fieldset = () => document.activeElement.closest("fieldset") || at("answers").querySelectorAll("fieldset")[active];
const number = () => at("answers").querySelectorAll(".number")[active];
const reasons = () => [...at("answers").querySelectorAll("textarea")];
const complete = () => row.questions.every(question => question.name in given);

function reason(question, several) {
  const hint = task.kind === "preference" ? "What makes it better, in the better one’s words" : "What is right or wrong in it";
  return el("label", {class: "reason"}, el("span", {}, kbd("w"), " Why?"), el("textarea", {rows: 1, maxlength: 2000, placeholder: `${hint}${task.asks_why ? "" : " (optional)"}`,
    "aria-label": several ? `Why? ${question.name}` : "Why?", "aria-keyshortcuts": "w", dir: "auto",
    oninput: event => { given = {...given, why: {...given.why, [question.name]: event.target.value}}; draft() }}, (given.why || {})[question.name] || ""));
}
function typed(question, field) {
  given = {...given, [question.name]: field.valueAsNumber};
  if (Number.isNaN(field.valueAsNumber)) delete given[question.name];
  draft();
  at("save").disabled = !complete();
}
// Enter in a reason goes to the next question, or saves.
function reasoned() {
  if (complete()) return at("answers").requestSubmit();
  active = row.questions.findIndex(question => !(question.name in given));
  tell(row.questions.length > 1 ? row.questions[active].name : "Now the answer.");
  ask_();
  (number() || at("place")).focus({preventScroll: true});
}

// The worst answer comes first, but A stands left of B.
const inOrder = choices => task.kind === "preference" ? [...choices].reverse() : choices;

function answer(place, choice) {
  if (busy) return;
  given = {...given, [row.questions[place].name]: choice.value};
  if (row.questions.length === 1 && !task.asks_why) return save(`Saved: ${choice.label}.`);
  draft();
  if (task.asks_why) {
    active = place;
    tell(`${row.questions.length > 1 ? `${row.questions[place].name}: ` : ""}${choice.label}. Say why; Enter goes on.`);
    ask_();
    return reasons()[place].focus();
  }
  const open = row.questions.findIndex(question => !(question.name in given));
  active = open < 0 ? place : open;
  tell(`${row.questions[place].name}: ${choice.label}.${open < 0 ? " Enter saves." : ""}`);
  ask_();
}

function save(words) {
  return send({action: "answer", unit: row.key, turn: row.turn, answer: given, after: row.after}, words);
}

at("answers").addEventListener("submit", event => {
  event.preventDefault();
  if (task.kind !== "spans" && !complete()) return;
  save(task.kind === "spans" ? `Saved: ${counted(given.errors.length)}.` : "Saved.");
});

// Error spans --------------------------------------------------------------------------------------------------------
// Places are counted in code points, as everywhere in judgesmith; a browser counts in UTF-16.
let words = [], pieces = [], cursor = 0, anchor = 0, omission = false;
const counted = n => n === 0 ? "no errors" : n === 1 ? "1 error" : `${n} errors`;

function begin() {
  words = []; cursor = anchor = 0; omission = false;
  let place = 0;
  for (const {segment} of new Intl.Segmenter(undefined, {granularity: "word"}).segment(row.texts.output)) {
    const length = Array.from(segment).length;
    words.push({text: segment, start: place, end: place + length, blank: !segment.trim()});
    place += length;
  }
  at("output").addEventListener("pointerup", () => { const chosen = selected(); if (chosen) tell(`“${cut(chosen.text)}”: press 1 to 5 for its severity.`) });
  paint();
}
const cut = text => text.length > 60 ? text.slice(0, 59) + "…" : text;

const chosenWords = () => [Math.min(cursor, anchor), Math.max(cursor, anchor)];

// The text anew, with its marks. Where the cursor is, `point` shows, as long texts take a while to build.
function paint() {
  const ends = new Set(given.errors.flatMap(error => [error.start, error.end]));
  pieces = [];
  words.forEach((word, place) => {
    const points = Array.from(word.text);
    for (let i = 0, last = 0; i++ < points.length;) {
      if (i < points.length && !ends.has(word.start + i)) continue;
      const start = word.start + last, grave = Math.max(0, ...given.errors.filter(e => e.start !== null && e.start <= start && start < e.end).map(e => e.severity));
      const piece = el(grave ? "mark" : "span", {class: grave ? `s${grave}` : null}, points.slice(last, i).join(""));
      piece.start = start; piece.word = place; pieces.push(piece); last = i;
    }
  });
  at("output").replaceChildren(...pieces);
  point();
}
function point() {
  const [from, to] = chosenWords();
  for (const piece of at("output").querySelectorAll(".here")) piece.classList.remove("here");
  for (const piece of pieces) if (piece.word >= from && piece.word <= to) piece.classList.add("here");
}

function selected() {
  const chosen = getSelection();
  if (chosen.rangeCount && !chosen.isCollapsed && at("output").contains(chosen.anchorNode) && at("output").contains(chosen.focusNode)) {
    const range = chosen.getRangeAt(0), [start, end] = [offset(range.startContainer, range.startOffset), offset(range.endContainer, range.endOffset)];
    if (start < end) return {start, end, text: chosen.toString()};
  }
  return null;
}
function offset(node, place) {
  if (node.nodeType === Node.TEXT_NODE) return node.parentNode.start + Array.from(node.data.slice(0, place)).length;
  const next = node.childNodes[place];
  if (next && next.start !== undefined) return next.start;
  return words.length ? words[words.length - 1].end : 0;
}

function mark(severity) {
  const [from, to] = chosenWords();
  const place = omission ? {start: null, end: null, text: ""} : selected() || {start: words[from].start, end: words[to].end, text: words.slice(from, to + 1).map(w => w.text).join("")};
  const same = given.errors.find(e => e.start !== null && e.start === place.start && e.end === place.end);
  const rest = given.errors.filter(e => e !== same);
  given = {errors: [...rest, {start: place.start, end: place.end, severity, explanation: same ? same.explanation : ""}]};
  tell(`${omission ? "Omission" : `“${cut(place.text)}”`}: ${task.severities[severity]}. E adds what is wrong.`);
  omission = false; anchor = cursor; getSelection().removeAllRanges();
  changed();
}
function unmark(error) {
  given = {errors: given.errors.filter(one => one !== error)};
  tell("The mark is gone.");
  changed();
  at("output").focus();
}
function changed() { draft(); paint(); ask_() }
const under = () => given.errors.filter(e => e.start !== null && e.start <= words[cursor].start && words[cursor].start < e.end).pop();

function step(by, extend) {
  let place = cursor;
  do place += by; while (words[place] && words[place].blank);
  if (!words[place]) return;
  cursor = place; if (!extend) anchor = place;
  const [from, to] = chosenWords(), there = under();
  tell(words.slice(from, to + 1).map(w => w.text).join("") + (there ? ` (${task.severities[there.severity]})` : ""));
  point();
  at("output").querySelector(".here").scrollIntoView({block: "nearest"});
}

function marking() {
  const points = Array.from(row.texts.output);
  const list = given.errors.map((error, place) => el("li", {},
    el("q", {class: `s${error.severity}`, dir: "auto"}, `${error.severity} · ${error.start === null ? "omission" : cut(points.slice(error.start, error.end).join(""))}`),
    el("input", {"aria-label": `What is wrong with error ${place + 1}`, placeholder: "What is wrong? (optional)", maxlength: 2000, value: error.explanation || null, class: "note",
      oninput: event => { error.explanation = event.target.value; draft() }}),
    el("button", {type: "button", "aria-label": `Remove error ${place + 1}`, onclick: () => unmark(error)}, "Remove")));
  return [el("p", {id: "how", class: "small"}, "Arrows choose a word, with Shift several, or select with the mouse; then its severity:"),
    el("div", {class: "choices", role: "group", "aria-label": "Severity"}, ...Object.entries(task.severities).map(([key, name]) =>
      el("button", {type: "button", class: `s${key}`, "aria-keyshortcuts": key, onmousedown: event => event.preventDefault(), onclick: () => mark(Number(key))}, kbd(key), ` ${name}`)),
      el("button", {type: "button", "aria-keyshortcuts": "o", "aria-pressed": String(omission), onclick: omit}, kbd("o"), " Omission")),
    list.length ? el("ol", {class: "marks", "aria-label": "Errors so far"}, ...list) : null,
    el("p", {class: "row"}, el("button", {class: "main"}, kbd("Enter"), ` Save: ${counted(given.errors.length)}`))].filter(Boolean);
}
function omit() { omission = !omission; tell(omission ? "Something is missing: press 1 to 5 for its severity." : "No omission."); ask_() }

function spanKey(event) {
  const key = event.key;
  if (key === "ArrowRight" || key === "ArrowLeft") step(key === "ArrowRight" ? 1 : -1, event.shiftKey);
  else if (key === "Home" || key === "End") { cursor = key === "Home" ? -1 : words.length; step(key === "Home" ? 1 : -1, event.shiftKey) }
  else if (task.severities[key]) mark(Number(key));
  else if (key === "o") omit();
  else if (key === "e" && at("answers").querySelector(".note")) [...at("answers").querySelectorAll(".note")].pop().focus();
  else if ((key === "Delete" || key === "Backspace") && under()) unmark(under());
  else return false;
  return true;
}

// Dialogs ------------------------------------------------------------------------------------------------------------
function skip() {
  if (!row) return;
  at("reasons").replaceChildren(...task.reasons.slice(0, -1).map((reason, place) =>
    el("button", {type: "button", "aria-keyshortcuts": String(place + 1), onclick: () => skipped(reason)}, kbd(String(place + 1)), ` ${reason}`)));
  at("reason").value = "";
  at("skipping").showModal();
  // Whoever types, types the reason: no key of the dialog or of the page takes a letter or a blank away from it.
  at("reason").focus();
}
function skipped(reason) {
  clearTimeout(chosen);
  at("skipping").close();
  send({action: "skip", unit: row.key, turn: row.turn, reason, after: row.after}, `Skipped: ${reason}.`);
}
// A digit alone in the field is the key of a reason; with more behind it, it begins one in the rater's own words.
const PAUSE = 600;
let chosen;
const keyed = () => singleKeys && /^\d$/.test(at("reason").value) ? task.reasons.slice(0, -1)[Number(at("reason").value) - 1] : undefined;
at("reason").addEventListener("input", () => {
  clearTimeout(chosen);
  if (at("reason").value && !at("reason").value.trim()) at("reason").value = "";
  if (keyed()) chosen = setTimeout(() => at("skipping").open && keyed() && skipped(keyed()), PAUSE);
});
at("own-reason").addEventListener("submit", event => { event.preventDefault(); if (at("reason").value.trim()) skipped(keyed() ?? at("reason").value.trim()) });
at("skipping").addEventListener("close", () => clearTimeout(chosen));

const percent = share => share === null ? "–" : `${Math.round(100 * share)} %`;
const two = value => value == null ? "–" : value.toFixed(2);
function table(caption, head, rows) {
  return el("div", {class: "scroll"}, el("table", {}, el("caption", {class: "small"}, caption), el("thead", {}, el("tr", {}, ...head.map(cell => el("th", {scope: "col"}, cell)))),
    el("tbody", {}, ...rows.map(cells => el("tr", {}, ...cells.map(cell => el("td", {}, el("bdi", {}, String(cell)))))))));
}
async function agreement() {
  const {status, told} = await ask(`api/agreement?rater=${encodeURIComponent(rater)}`);
  if (status !== 200) return warn(told.error);
  const several = task.kind !== "spans" && told.agreement.length > 1, spread = (value, low, high) => value === null ? "–" : low === null ? two(value) : `${two(value)} [${two(low)}, ${two(high)}]`;
  const made = [table("Raters, beside the mean of the others on the same rows", ["Rater", ...(several ? ["Question"] : []), "Rated", "Skipped", "Mean", "Above the others", "r", "Same answer twice"],
    told.raters.flatMap(r => (r.beside.length ? r.beside : [null]).map(one => [r.rater, ...(several ? [one ? one.question : "–"] : []), r.rated, r.skipped, two(one && one.mean), one ? spread(one.lead, one.low, one.high) : "–", two(one && one.r), r.same === null ? "–" : `${percent(r.same)} of ${r.twice}`])))];
  for (const r of told.raters) for (const one of r.beside) if (one.doubt) made.push(el("p", {class: "alert"}, one.doubt));
  if (told.blind) made.push(el("p", {}, "You see the others' answers and figures when you have answered every row."));
  const spans = task.kind === "spans", there = told.agreement.filter(one => one.rows);
  if (there.length) made.push(table("Between raters", spans ? ["", "F1", "F1 with severities", "Rows"] : ["", "Krippendorff’s alpha (interval)", "Equal", "Rows"],
    there.map(one => spans ? [one.question, two(one.f1), two(one.weighted_f1), one.rows] : [one.question, spread(one.alpha, one.low, one.high), percent(one.equal), one.rows])));
  else made.push(el("p", {}, "No row has been answered by two raters yet."));
  if (told.splits.length) made.push(table(task.settling ? "Rows that split the raters" : "Rows that split the raters, of those that you answered", ["Row", "Answers", "Settled"], told.splits.map(one => [one.id, Object.entries(one.answers).map(([who, said]) => `${who}: ${said}`).join(" · "), one.settled ? `${one.settled.by}: ${one.settled.answer}` : "–"])));
  if (told.contradictions.length) made.push(task.settling ? table("Rows on which raters contradicted themselves", ["Row", "Rater", "First", "Then"], told.contradictions.map(one => [one.id, one.rater, one.first, one.second]))
    : table("Rows on which you contradicted yourself", ["Row", "First", "Then"], told.contradictions.map(one => [one.id, one.first, one.second])));
  if (told.confused.length) made.push(table("Answers given to the same row: where the guidelines may draw no line", ["", "Answers", "Rows"], told.confused.map(one => [one.question, one.between.join(" and "), one.rows])));
  at("agreement-text").replaceChildren(...made);
  at("agreement").showModal();
}

function help() {
  const own = task.kind === "spans" ? [["← →", "choose a word, with Shift several"], ["1 – 5", "mark it with that severity"], ["O", "something is missing"], ["E", "say what is wrong"], ["Del", "remove the mark under the cursor"], ["Enter", "save, go on"]]
    : row && row.questions.length > 1 ? [["digits, Y, N", "answer the framed question"], ["↑ ↓", "go to another question"], ["Enter", "save, go on"]]
    : !row ? [] : row.questions[0].choices.some(choice => choice.key !== choice.label) ? inOrder(row.questions[0].choices).map(choice => [choice.key.toUpperCase(), choice.label])
    : row.questions[0].choices.length ? [["digits", "the score; it is saved at once"]] : [["Enter", "save the number, go on"]];
  const all = [...own, ...(task.takes_why ? [["W", "say why; Enter leaves the field, Shift and Enter begin a line"]] : []), ["U", "undo the last answer"], ["S", "skip, with a reason"], ["G", "guidelines"], ["D", "agreement so far"], ["?", "this list"], ["Esc", "close, leave a field"]];
  at("keys-list").replaceChildren(...all.map(([key, what]) => el("tr", {}, el("th", {scope: "row"}, el("kbd", {}, key)), el("td", {}, what))));
  at("keys").showModal();
}
at("single").addEventListener("change", event => { singleKeys = event.target.checked });
for (const button of document.querySelectorAll("dialog .close")) button.addEventListener("click", () => button.closest("dialog").close());
// A dialog reports its closing with the next frame, when somebody may have gone on to an answer.
for (const dialog of document.querySelectorAll("dialog")) dialog.addEventListener("close", () => { if (row && !at("answers").contains(document.activeElement)) (number() || (task.kind === "spans" ? at("output") : at("place"))).focus({preventScroll: true}) });

function guide() {
  const hidden = at("guidelines").hidden = !at("guidelines").hidden;
  at("desk").classList.toggle("guided", !hidden);
  at("guide").setAttribute("aria-expanded", String(!hidden));
  tell(hidden ? "Guidelines are hidden." : "Guidelines are shown.");
}
const undo = () => at("undo").disabled || send({action: "undo"}, "Undone.");
const why = () => row && task.takes_why && fieldset().querySelector("textarea").focus();
const tools = {w: why, u: undo, s: skip, g: () => task.guidelines && guide(), d: agreement, "?": help};
for (const [id, run] of [["undo", undo], ["skip", skip], ["guide", guide], ["agree", agreement], ["help", help]]) at(id).addEventListener("click", run);

addEventListener("keydown", event => {
  // A key held down since it opened a dialog is no letter of a reason, and no press of a button.
  if (event.repeat && !event.key.startsWith("Arrow") && at("skipping").open && !at("reason").value) event.preventDefault();
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat && !event.key.startsWith("Arrow") || !task || !rater) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key, field = event.target.matches("input:not([type=checkbox]), textarea");
  if (field) {
    if (event.target.classList.contains("note") && (key === "Enter" || key === "Escape")) { event.preventDefault(); at("output").focus() }
    else if (event.target.matches(".reason *") && key === "Enter" && !event.shiftKey) { event.preventDefault(); reasoned() }
    else if (event.target.matches(".number") && key === "Enter" && task.asks_why) { event.preventDefault(); why() }
    else if (event.target.matches(".number, .reason *") && key === "Escape") at("place").focus();
    else if (!event.target.matches(".number") || !(key in tools)) return;
  }
  const open = document.querySelector("dialog[open]");
  if (key.length === 1 && !singleKeys && key !== "?") return;
  if (open) {
    if (open.id === "skipping" && !field && key.length === 1 && key !== " ") at("reason").focus();
    return;
  }
  if (event.defaultPrevented || busy) return;
  if (pressed(key, event)) event.preventDefault();
});
function pressed(key, event) {
  if (key in tools) { tools[key](); return true }
  if (!row || at("desk").hidden) return false;
  if (key === "Enter" && !event.target.matches("button")) { at("answers").requestSubmit(); return true }
  if (task.kind === "spans") return spanKey(event);
  if (row.questions.length > 1 && (key === "ArrowUp" || key === "ArrowDown")) {
    active = Math.min(row.questions.length - 1, Math.max(0, active + (key === "ArrowDown" ? 1 : -1)));
    tell(row.questions[active].name);
    ask_();
    return true;
  }
  const choice = row.questions[active] && row.questions[active].choices.find(one => one.key === key);
  if (choice) answer(active, choice);
  return Boolean(choice);
}

// The beginning ------------------------------------------------------------------------------------------------------
async function enter(name) {
  rater = name;
  const {status, told} = await ask(`api/next?rater=${encodeURIComponent(name)}`);
  if (status !== 200) { rater = null; return warn(told.error) }
  sessionStorage.setItem("rater", name);
  warn("");
  show(told, `Labelling as ${name}. Press ? for the keys.`);
}
at("who").addEventListener("submit", event => { event.preventDefault(); enter(at("name").value) });

async function start() {
  const {status, told} = await ask("api/task");
  if (status !== 200) return warn(told.error);
  task = told;
  at("title").textContent = document.title = task.title;
  at("guidelines-text").textContent = task.guidelines;
  at("guidelines").hidden = at("guide").hidden = !task.guidelines;
  at("desk").classList.toggle("guided", Boolean(task.guidelines));
  at("guide").setAttribute("aria-expanded", String(Boolean(task.guidelines)));
  const known = task.rater || sessionStorage.getItem("rater");
  if (known) return enter(known);
  at("about").textContent = `${task.title}: rows of ${task.origin}.`;
  at("known").replaceChildren(...task.raters.map(name => el("button", {type: "button", onclick: () => enter(name)}, el("bdi", {}, name))));
  at("known").hidden = !task.raters.length;
  only("who");
  at("name").focus();
}
start().catch(() => warn("The server does not answer. Is the command still running?"));
