// The page of `prune4rel review`. Text from the data set only ever becomes text: never markup.
// This file shows: the server's answers, what is listed, one example, the grid. `review.js` decides, by the same names.

'use strict';

const $ = (id) => document.getElementById(id);
const token = new URLSearchParams(location.search).get('token') ?? '';
const CHUNK = 120, AHEAD = 3, SECTION = 100000, FIXED = 10, POLL = 1000, SPOKEN = 4000;
const store = (kind, name) => ({
  get: (fallback) => { try { return JSON.parse(window[kind].getItem(`prune4rel.${name}`)) ?? fallback; } catch { return fallback; } },
  set: (value) => { try { window[kind].setItem(`prune4rel.${name}`, JSON.stringify(value)); } catch { /* private window */ } },
});
const kept = { place: store('sessionStorage', `place${token}`), undo: store('sessionStorage', `undo${token}`),
  who: store('localStorage', 'who'), keys: store('localStorage', 'keys') };

let about = null, filter = null, total = 0, position = 0, view = 'one', version = 0, counts = {};
let rows = new Map(), warned = null, waiting = new Map(), details = new Map(), positions = new Map(), states = new Map(), seen = null;
let marked = new Set(), busy = false, undoing = 0, epoch = 0, reached = true, pending = null, bulkTicket = null, leftTimer = 0, toldTimer = 0, section = 0;

// The server.

async function ask(path, values = {}, body = undefined) {
  const query = new URLSearchParams(values);
  const how = body === undefined ? { headers: { 'X-Token': token } } : {
    method: 'POST', headers: { 'X-Token': token, 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  let response;
  try { response = await fetch(`${path}${query.size ? `?${query}` : ''}`, how); } catch {
    const error = new Error('The server does not answer.');
    error.away = true;
    throw error;
  }
  const answer = await response.json().catch(() => ({ error: `the server failed (${response.status})` }));
  if (!response.ok) {
    const error = new Error(answer.error ?? `the server refused (${response.status})`);
    error.conflict = answer.conflict === true;
    error.away = response.status === 403;
    throw error;
  }
  return answer;
}

function trouble(text) {
  $('trouble').textContent = text;
  $('trouble').hidden = !text;
}

function tell(text, more = '') { // more: for those who cannot see it
  $('status').replaceChildren(text, make('span', { className: 'unseen', textContent: more }));
  $('status').classList.remove('old');
  clearTimeout(toldTimer);
  toldTimer = setTimeout(() => $('status').classList.add('old'), SPOKEN);
}

function failed(error) {
  if (error.away) {
    reached = false;
    trouble(`${error.message} All that was shown as saved is saved; nothing is saved now. Start “prune4rel review” again: this page goes on by itself.`);
  } else {
    tell(error.message);
  }
}

// Making elements.

function make(tag, more = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(more)) {
    if (name in node && name !== 'list') node[name] = value; else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ''));
  return node;
}

const className = (number) => about.classes[number] ?? '?';
const percent = (share) => share === null || share === undefined ? '' : `${Math.round(100 * share)} %`;
const number = (value) => value.toLocaleString('en');
const stateOf = (row) => (states.has(row.row) ? states.get(row.row) : row.state);
const nameOf = (row) => row.id === null || row.id === undefined ? `example ${row.row}` : `${row.id}`;

function picture(row, size, split = 'train') {
  const source = `picture?${new URLSearchParams({ row, size, split, token })}`;
  const image = make('img', { alt: size > 200 ? `picture of example ${row}` : '', decoding: 'async', draggable: false });
  if (size > 200) image.addEventListener('load', () => { // what is tiny is easier to make out if it is not blown up
    image.style.maxWidth = image.style.maxHeight = `${Math.max(192, 8 * Math.max(image.naturalWidth, image.naturalHeight))}px`;
  });
  image.addEventListener('error', async () => {
    const error = await ask('picture', { row, size, split }).then(() => 'it cannot be shown', (problem) => problem.message);
    image.replaceWith(make('p', { className: 'broken', textContent: `No picture: ${error}` }));
  });
  image.src = source;
  return image;
}

function stateText(state) {
  if (!state) return '';
  const what = state.what === 'label' ? `✓ ${state.label}` : state.what === 'unsure' ? '? cannot tell' : '✕ removed';
  return `${what}${state.who && state.who !== who() ? ` (${state.who})` : ''}`;
}

const who = () => $('who').value.trim();

// What is listed.

function readFilter() {
  const form = $('filter');
  const value = (name) => form.elements[name].value;
  const some = (name) => value(name) === '' ? null : Number(value(name));
  return { order: value('order'), state: value('state'), given: some('given'), predicted: some('predicted'),
    low: Number(value('low') || 0), high: Number(value('high') || 1), source: value('source') || null,
    issues: form.elements.issues.checked, asof: version };
}

function showFilter(values) {
  const form = $('filter');
  for (const name of ['order', 'state', 'low', 'high']) form.elements[name].value = values[name];
  for (const name of ['given', 'predicted', 'source']) form.elements[name].value = values[name] ?? '';
  form.elements.issues.checked = values.issues;
  form.elements.pair.value = values.given === null || values.predicted === null ? '' : `${values.given},${values.predicted}`;
}

function forget() {
  epoch += 1;
  rows = new Map(); waiting = new Map(); details = new Map(); positions = new Map(); states = new Map();
}

async function list(at = 0) {
  forget();
  marked.clear();
  section = 0;
  const begun = epoch;
  delete document.documentElement.dataset.ready;
  await load(Math.max(0, at));
  if (begun !== epoch) return;
  position = Math.min(at, Math.max(0, total - 1));
  await show();
  document.documentElement.dataset.ready = 'true';
}

function load(at) {
  const start = Math.floor(at / CHUNK) * CHUNK;
  if (waiting.has(start)) return waiting.get(start);
  const begun = epoch;
  const answer = ask('api/rows', { filter: JSON.stringify(filter), start, count: CHUNK }).then((found) => {
    if (begun !== epoch) return;
    total = found.total;
    found.rows.forEach((row, place) => { rows.set(start + place, row); positions.set(row.row, start + place); });
    $('total').textContent = `(${number(total)})`;
  }).catch((error) => { waiting.delete(start); throw error; });
  waiting.set(start, answer);
  return answer;
}

async function rowAt(at) {
  if (!rows.has(at)) await load(at);
  return rows.get(at);
}

function detail(row) {
  if (!details.has(row)) details.set(row, ask('api/example', { row }).catch((error) => { details.delete(row); throw error; }));
  return details.get(row);
}

function remember() { kept.place.set({ filter, position, view }); }

// One example.

async function show() {
  remember();
  $('one-view').setAttribute('aria-pressed', view === 'one');
  $('grid-view').setAttribute('aria-pressed', view === 'grid');
  $('empty').hidden = total > 0 && position < total;
  $('one').hidden = view !== 'one' || !$('empty').hidden;
  $('grid').hidden = view !== 'grid' || total === 0;
  if (total === 0) $('empty').hidden = false;
  askLeft();
  if (view === 'grid') { $('empty').hidden = total > 0; layGrid(); return; }
  if (position >= total) return;
  const begun = epoch, at = position;
  const row = await rowAt(at);
  if (!row) return;
  const found = await detail(row.row);
  if (begun !== epoch || at !== position) return;
  showOne({ ...found, state: row.state });
  for (let next = at + 1; next <= Math.min(at + AHEAD, total - 1); next += 1) {
    rowAt(next).then((each) => {
      if (!each || begun !== epoch) return;
      detail(each.row).catch(() => {});
      if (about.kind === 'pictures') new Image().src = `picture?${new URLSearchParams({ row: each.row, size: 640, split: 'train', token })}`;
    }, () => {});
  }
}

function showOne(found) {
  const same = found.given === found.predicted;
  const subject = $('subject');
  if (subject.dataset.row !== String(found.row)) {
    subject.dataset.row = found.row;
    subject.classList.toggle('picture', about.kind === 'pictures');
    if (about.kind === 'pictures') subject.replaceChildren(picture(found.row, 640));
    else if (about.kind === 'texts') {
      subject.replaceChildren(make('div', { className: 'text', tabIndex: 0, textContent: found.text + (found.cut ? ' …' : ''), role: 'region', 'aria-label': 'Text' }));
    } else if (found.cells.length) subject.replaceChildren(make('dl', { className: 'cells', tabIndex: 0, 'aria-label': 'The row', role: 'group' }, ...cells(found)));
    else subject.replaceChildren(make('p', { className: 'broken', textContent: about.trouble || 'There is nothing to look at but numbers.' }));
    $('cells-box').hidden = about.kind === 'rows' || !found.cells.length;
    $('row-cells').replaceChildren(...cells(found));
    $('typed').hidden = true;
  }
  $('where').replaceChildren(`${number(position + 1)} of ${number(total)} · `, make('bdi', { textContent: nameOf(found) }),
    `${found.id === null ? '' : ` · row ${found.row}`}${about.sources.length > 1 ? ` · judged by ${found.source}` : ''}`);
  $('given').replaceChildren(className(found.given), make('small', { textContent: `fits: ${percent(found.score)}` }));
  $('suggest-word').textContent = same ? (found.issue ? 'Doubtful, but nothing is likelier' : 'The model agrees') : found.issue ? 'Suggested' : 'The model’s guess';
  $('predicted').replaceChildren(className(found.predicted), make('small', { textContent: `sure: ${percent(found.confidence)}` }));
  const accept = document.querySelector('[data-act="accept"]');
  accept.classList.toggle('gone', same);
  accept.disabled = same || about.read_only;
  $('accept-name').textContent = className(found.predicted);
  $('keep-name').textContent = className(found.given);
  seen = found.row;
  $('state').textContent = found.state ? `Decided: ${stateText(found.state)}` : 'Not decided';
  $('state').classList.toggle('open', !found.state);
  const choices = about.classes.length <= FIXED ? about.classes.map((_, label) => label) : found.likeliest.map((each) => each.label);
  const likely = new Map(found.likeliest.map((each) => [each.label, each.probability]));
  $('numbers').replaceChildren(...choices.map((label, place) => {
    const button = make('button', { type: 'button' }, make('kbd', { textContent: (place + 1) % 10 }), make('span', { className: 'name', textContent: className(label) }),
      make('span', { className: 'small', textContent: percent(likely.get(label)) }));
    button.classList.toggle('is-given', label === found.given);
    button.classList.toggle('is-suggested', label === found.predicted && !same);
    button.addEventListener('click', () => decide('label', className(label)));
    return make('li', {}, button);
  }));
  const { pair } = found;
  $('pair').textContent = same ? `No other class is likelier than ${className(found.given)}.`
    : `${className(found.given)} → ${className(found.predicted)}: suggested ${number(pair.suggested)} times`
      + (pair.rate === null ? '' : `; about ${(100 * pair.rate).toFixed(1)} % of all ${className(found.predicted)} are labelled ${className(found.given)}`)
      + (pair.settled ? `. Of ${pair.settled} decided, ${pair.accepted} were accepted and ${pair.kept} kept.` : '.');
  evidence('neighbours', found.neighbours, found, (each) => `similar: ${percent(each.similarity)}`);
  evidence('duplicates', found.duplicates, found, (each) => `${each.kind} duplicate${each.split === 'train' ? '' : `, in ${each.split}`}`);
  const votes = new Map();
  for (const each of found.neighbours) votes.set(each.given, (votes.get(each.given) ?? 0) + 1);
  $('signs').textContent = found.neighbours.length ? `(= as given${same ? '' : ', → as suggested'})` : '';
  $('votes').textContent = [...votes].sort((a, b) => b[1] - a[1]).map(([label, times]) => `${times} × ${className(label)}`).join(', ');
}

const cells = (found) => found.cells.map(([name, value]) => make('div', {}, make('dt', { textContent: name }), make('dd', { textContent: value })));

function evidence(name, list, found, words) {
  $(`${name}-box`).hidden = list.length === 0;
  $(name).replaceChildren(...list.map((each) => {
    const known = each.given !== undefined;
    const label = known ? make('b', { textContent: className(each.given),
      className: each.given === found.given ? 'agrees' : each.given === found.predicted ? 'suggests' : '' }) : null;
    return make('li', { className: about.kind === 'texts' ? 'wide' : '' }, small(each), label,
      make('div', { className: 'small', textContent: `${words(each)}${stateOf(each) ? ` · ${stateText(stateOf(each))}` : ''}` }));
  }));
}

function small(row) {
  if (about.kind === 'pictures') return picture(row.row, 128, row.split);
  if (row.given === undefined && row.text === undefined) return make('div', { className: 'small', textContent: `row ${row.row}` });
  if (about.kind === 'texts') return make('div', { className: 'text', textContent: row.text });
  return make('div', { textContent: nameOf(row) });
}

// The grid: only what is in sight is there.

const grid = { columns: 1, width: 150, height: 190, cells: new Map(), pool: [] };

function layGrid(anew = false) {
  const scroll = $('scroll'), wide = about.kind === 'texts' ? 260 : 148;
  const inner = scroll.clientWidth;
  if (!inner) return;
  grid.columns = Math.max(1, Math.floor(inner / wide));
  grid.width = inner / grid.columns;
  grid.height = about.kind === 'pictures' ? 200 : 176;
  section = Math.floor(position / SECTION);
  const here = Math.min(SECTION, total - section * SECTION);
  $('cells').style.height = `${Math.ceil(here / grid.columns) * grid.height}px`;
  document.querySelector('.pager').hidden = total <= SECTION;
  $('span').textContent = `${number(section * SECTION + 1)}–${number(section * SECTION + here)} of ${number(total)}`;
  $('earlier').disabled = section === 0;
  $('later').disabled = (section + 1) * SECTION >= total;
  if (anew !== true || grid.epoch !== epoch || grid.section !== section) {
    for (const cell of grid.cells.values()) cell.remove();
    grid.cells.clear();
    grid.epoch = epoch;
    grid.section = section;
    reveal(false);
  }
  fill(true);
}

function fill(anew = false) {
  const scroll = $('scroll'), offset = section * SECTION, here = Math.min(SECTION, total - offset);
  const first = Math.max(0, Math.floor(scroll.scrollTop / grid.height) - 1) * grid.columns;
  const last = Math.min(here, (Math.ceil((scroll.scrollTop + scroll.clientHeight) / grid.height) + 1) * grid.columns);
  for (const [at, cell] of grid.cells) {
    if (at < offset + first || at >= offset + last) {
      if (cell.contains(document.activeElement)) scroll.focus({ preventScroll: true });
      cell.remove();
      grid.pool.push(cell);
      grid.cells.delete(at);
    }
  }
  const missing = new Set();
  for (let at = offset + first; at < offset + last; at += 1) {
    let cell = grid.cells.get(at);
    if (!cell) {
      cell = grid.pool.pop() ?? newCell();
      grid.cells.set(at, cell);
      place(cell, at);
      $('cells').append(cell);
      cell.shown = null;
    } else if (anew) place(cell, at);
    const row = rows.get(at);
    if (!row) missing.add(Math.floor(at / CHUNK) * CHUNK);
    if (anew || cell.shown !== row || !row) paint(cell, at, row);
  }
  if (missing.size) {
    const begun = epoch;
    clearTimeout(grid.timer);
    grid.timer = setTimeout(() => {
      for (const start of missing) load(start).then(() => { if (begun === epoch) fill(); }).catch(failed);
    }, 30);
  }
}

function newCell() {
  const cell = document.createElement('li');
  cell.box = make('div', { className: 'subject-small' });
  cell.words = [make('span', { className: 'mark' }), make('span'), make('span', { className: 'done' })];
  cell.button = make('button', { type: 'button' }, cell.box, ...cell.words);
  cell.button.addEventListener('click', (event) => {
    position = cell.at;
    if (event.detail === 2) { view = 'one'; show(); return; }
    mark();
  });
  cell.append(cell.button);
  return cell;
}

function place(cell, at) {
  const local = at - section * SECTION;
  cell.at = at;
  cell.style.width = `${grid.width}px`;
  cell.style.height = `${grid.height}px`;
  cell.style.transform = `translate(${(local % grid.columns) * grid.width}px, ${Math.floor(local / grid.columns) * grid.height}px)`;
  cell.setAttribute('aria-posinset', at + 1);
  cell.setAttribute('aria-setsize', total);
}

function paint(cell, at, row) {
  cell.button.tabIndex = at === position ? 0 : -1;
  cell.button.setAttribute('aria-pressed', marked.has(at));
  if (cell.shown === row && row) return;
  cell.shown = row;
  const [first, second, third] = cell.words;
  if (!row) { cell.box.replaceChildren(); first.textContent = '…'; second.textContent = third.textContent = ''; cell.row = null; return; }
  if (cell.row !== row.row) {
    cell.row = row.row;
    cell.box.replaceChildren(about.kind === 'pictures' ? picture(row.row, 128) : about.kind === 'texts' ? row.text : nameOf(row));
  }
  first.textContent = className(row.given);
  second.textContent = row.given === row.predicted ? `= model, fits ${percent(row.score)}` : `→ ${className(row.predicted)} ${percent(row.confidence)}`;
  third.textContent = stateText(row.state);
}

function reveal(focus = true) {
  const scroll = $('scroll');
  if (Math.floor(position / SECTION) !== section) { layGrid(); }
  const top = Math.floor((position - section * SECTION) / grid.columns) * grid.height;
  if (top < scroll.scrollTop) scroll.scrollTop = top;
  else if (top + grid.height > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + grid.height - scroll.clientHeight;
  if (focus) { fill(true); grid.cells.get(position)?.button.focus({ preventScroll: true }); }
}

function mark() {
  if (marked.has(position)) marked.delete(position); else marked.add(position);
  fill(true);
  grid.cells.get(position)?.button.focus({ preventScroll: true });
  tell(marked.size ? `${marked.size} marked` : '');
}

function step(by) {
  position = Math.min(Math.max(0, position + by), total - 1);
  remember();
  askLeft();
  reveal();
}
