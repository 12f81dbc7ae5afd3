// The page of `prune4rel review`. Text from the data set only ever becomes text: never markup.

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

// Deciding.

async function decide(what, label = null) {
  if (busy || about.read_only || !total || position >= total) return;
  const here = rows.get(position);
  if (view === 'one' && here?.row !== seen) return; // it is not on the screen yet
  if (view === 'one' && here.row === warned) { // the key may have been on its way before this was on the screen
    warned = null;
    tell(`${$('status').textContent}. Press the key again to replace that.`);
    return;
  }
  warned = null;
  const chosen = view === 'grid' && marked.size ? [...marked].map((at) => rows.get(at)).filter(Boolean) : [here].filter(Boolean);
  if (!chosen.length) return;
  const decisions = chosen.map((row) => ({ row: row.row, seen: row.state?.batch ?? null,
    what: what === 'keep' || what === 'accept' ? 'label' : what,
    label: what === 'keep' ? className(row.given) : what === 'accept' ? className(row.predicted) : label }));
  await act(async () => {
    pending = decisions;
    const answer = await ask('api/decide', {}, { decisions, who: who() });
    pending = null;
    undoable(answer.batch);
    take(answer);
    const first = decisions[0];
    const words = first.what === 'label' ? first.label : first.what === 'unsure' ? 'cannot tell' : 'removed';
    const one = decisions.length === 1;
    $('typed').hidden = true;
    if (view === 'grid' && !one) { marked.clear(); layGrid(true); } else await onward();
    if (view === 'grid') grid.cells.get(position)?.button.focus({ preventScroll: true });
    tell(`Saved: ${one ? words : `${decisions.length} decisions`}.`, view === 'one' ? nextWords() : '');
  });
}

function undoable(batch) {
  kept.undo.set([...kept.undo.get([]), { batch, position }].slice(-2000));
}

function nextWords() {
  const row = rows.get(position);
  if (!row || position >= total) return ' That was the last one.';
  return ` Next: ${nameOf(row)}, given ${className(row.given)}, suggested ${className(row.predicted)}.`;
}

async function onward() {
  do position += 1; while (filter.state === 'undecided' && rows.get(position)?.state);
  if (view === 'grid') { position = Math.min(position, total - 1); reveal(); return; }
  await show();
}

async function act(work) {
  busy = true;
  try {
    await work();
    for (; undoing; undoing -= 1) await undoOne(); // pressed while something was on its way
  } catch (error) {
    undoing = 0;
    if (!error.away) pending = null;
    failed(error);
    if (error.conflict) {
      await changes().catch(failed);
      warned = null;
      tell(`${error.message}. Press the key again to replace that.`);
    }
  } finally { busy = false; }
}

async function undo() {
  if (about.read_only) return;
  undoing += 1;
  if (!busy) await act(async () => {});
}

async function undoOne() {
  const stack = kept.undo.get([]);
  const last = stack.pop();
  const answer = await ask('api/undo', {}, { batch: last?.batch ?? null, who: who() });
  kept.undo.set(stack);
  take(answer);
  const found = Object.keys(answer.states).map((row) => positions.get(Number(row))).find((at) => at !== undefined);
  if (found !== undefined) position = found; else if (last) position = Math.min(last.position, Math.max(0, total - 1));
  await show();
  if (view === 'grid') reveal();
  const rowsUndone = Object.keys(answer.states).length;
  tell(`Undone: ${rowsUndone > 1 ? `${rowsUndone} decisions` : nameOf(rows.get(position) ?? { row: Object.keys(answer.states)[0] })}.`);
}

function take(answer) {
  version = answer.version;
  counts = answer.counts;
  if (answer.many) { forget(); load(position).then(show).catch(failed); }
  for (const [row, state] of Object.entries(answer.states)) {
    const at = positions.get(Number(row));
    if (at !== undefined) rows.set(at, { ...rows.get(at), state });
    states.set(Number(row), state);
  }
  showCounts();
}

function showCounts() {
  const parts = [`${number(counts.decided)} of ${number(about.n)} decided`];
  for (const name of ['changed', 'kept', 'removed', 'unsure']) if (counts[name]) parts.push(`${number(counts[name])} ${name}`);
  $('counter').textContent = (about.read_only ? 'Read only · ' : '') + parts.join(' · ');
  document.title = `${number(counts.decided)} decided – ${about.title}`;
}

async function changes() {
  const before = rows.get(position)?.state?.batch;
  const answer = await ask('api/changes', { since: version });
  if (!reached) { reached = true; trouble(''); tell('The server is back.'); if (answer.version < version) { version = 0; await list(position); return; } }
  if (answer.version === version) return;
  take(answer);
  if (arrived()) { // it was on its way when the server went
    undoable(states.get(pending[0].row).batch);
    pending = null;
    await onward();
    tell('The server is back, and your last decision is saved.');
    return;
  }
  const state = rows.get(position)?.state;
  if (view === 'grid') layGrid(true);
  else if (state?.batch !== before) {
    warned = rows.get(position).row;
    await show();
    if (state) tell(`${state.who || 'Somebody'} has just decided: ${stateText(state)}`);
  }
  askLeft();
}

function arrived() {
  const mine = ({ row, what, label }) => {
    const state = states.get(row);
    return state && state.what === what && (what !== 'label' || state.label === label) && state.who === (who() || about.who);
  };
  return !busy && pending !== null && pending.every(mine);
}

function askLeft() {
  clearTimeout(leftTimer);
  leftTimer = setTimeout(async () => {
    try {
      const found = await ask('api/left', { filter: JSON.stringify(filter), position });
      for (const name of ['above', 'below', 'all']) {
        const { expected, low, high } = found[name];
        $(`left-${name}`).replaceChildren(make('b', { textContent: number(Math.round(expected)) }), ` (${number(low)}–${number(high)})`);
      }
    } catch (error) { if (error.away) failed(error); }
  }, 120);
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

// Another class, by typing.

function guess() {
  const typed = $('class-input').value.trim().toLowerCase();
  if (!typed) return null;
  const exact = about.classes.find((name) => name.toLowerCase() === typed);
  const begins = about.classes.filter((name) => name.toLowerCase().startsWith(typed));
  const holds = about.classes.filter((name) => name.toLowerCase().includes(typed));
  return exact ?? begins[0] ?? holds[0] ?? null;
}

function openTyped() {
  (view === 'grid' ? $('grid-actions') : document.querySelector('.facts .actions')).after($('typed'));
  $('typed').hidden = false;
  $('class-input').value = '';
  $('class-guess').textContent = '';
  $('class-input').focus();
}

// Many at once.

function openBulk() {
  const row = rows.get(position), pair = row && `${row.given},${row.predicted}`;
  if ([...$('bulk-pair').options].some(({ value }) => value === pair)) $('bulk-pair').value = pair;
  $('bulk').showModal();
}

async function look(event) {
  event?.preventDefault();
  const [given, predicted] = $('bulk-pair').value.split(',').map(Number);
  const confidence = Number($('bulk-score').value);
  bulkTicket = null;
  $('bulk-accept').hidden = true;
  try {
    const found = await ask('api/look', {}, { given, predicted, confidence, who: who() });
    $('bulk-told').textContent = found.count
      ? `${number(found.count)} undecided labels say ${className(given)} and would become ${className(predicted)}. ${found.sample.length < found.count ? `${found.sample.length} of them, drawn by chance:` : 'All of them:'}`
      : `No undecided label is like that${found.surest === null ? '' : `; the surest is ${percent(found.surest)} sure`}.`;
    $('bulk-sample').replaceChildren(...found.sample.map((row) => make('li', { className: about.kind === 'texts' ? 'wide' : '' }, small(row),
      make('div', { className: 'small', textContent: `sure: ${percent(row.confidence)}` }))));
    if (found.count && !about.read_only) {
      bulkTicket = { given, predicted, confidence, ticket: found.ticket };
      $('bulk-accept').textContent = `All ${number(found.count)} are ${className(predicted)}`;
      $('bulk-accept').hidden = false;
    }
  } catch (error) { $('bulk-told').textContent = error.message; }
}

async function acceptBulk() {
  if (!bulkTicket || busy) return;
  $('bulk-accept').hidden = true;
  try {
    const answer = await ask('api/accept', {}, { ...bulkTicket, who: who() });
    undoable(answer.batch);
    $('bulk').close();
    take(answer);
    tell(`Saved: ${number(answer.count)} labels are ${className(bulkTicket.predicted)} now. Undo takes all of them back.`);
    await show();
    if (view === 'grid') layGrid(true);
  } catch (error) { $('bulk-told').textContent = `${error.message}; nothing was saved`; }
}

// Keys and clicks.

const acts = {
  accept: () => {
    const row = rows.get(position);
    return decide(row && row.given === row.predicted && !marked.size ? 'keep' : 'accept');
  },
  keep: () => decide('keep'), unsure: () => decide('unsure'), remove: () => decide('remove'),
  other: openTyped, skip: () => { if (view === 'grid') step(1); else if (position < total) { position += 1; show().catch(failed); } },
  back: () => { if (view === 'grid') step(-1); else { position = Math.max(0, position - 1); show().catch(failed); } },
};
const letters = { a: acts.accept, k: acts.keep, c: acts.other, t: acts.unsure, r: acts.remove, s: acts.skip, z: undo,
  g: turn, b: openBulk, f: () => { $('filters').open = true; $('filter').elements.order.focus(); },
  l: () => relist(), '?': () => $('help').showModal(), x: () => { if (view === 'grid') mark(); } };

function turn() { view = view === 'one' ? 'grid' : 'one'; show().catch(failed); if (view === 'grid') reveal(); else $('main').focus({ preventScroll: true }); }

function relist() {
  filter = readFilter();
  list().then(() => tell(`${number(total)} listed`)).catch(failed);
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !about) return;
  const { target, key } = event;
  if (document.querySelector('dialog[open]')) return;
  if (target.matches('input:not([type="checkbox"]), select, textarea')) {
    if (key === 'Escape') { $('typed').hidden = true; $('main').focus({ preventScroll: true }); }
    return;
  }
  const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: grid.columns, ArrowUp: -grid.columns };
  if (view === 'grid' && key in moves) { event.preventDefault(); step(moves[key]); return; }
  if (view === 'grid' && key === 'Enter' && target.closest('#cells')) { event.preventDefault(); view = 'one'; show().catch(failed); $('main').focus({ preventScroll: true }); return; }
  if (key === 'ArrowRight') { acts.skip(); return; }
  if (key === 'ArrowLeft') { acts.back(); return; }
  if (!$('keys-on').checked) return;
  if (/^[0-9]$/.test(key)) {
    if (event.repeat) return;
    const row = rows.get(position), place = (Number(key) + 9) % 10;
    if (about.classes.length <= FIXED) { if (about.classes[place] !== undefined) decide('label', className(place)); } else if (row && view === 'one') {
      const button = $('numbers').querySelectorAll('button')[place];
      if (button) button.click();
    }
    return;
  }
  const letter = letters[key.length === 1 ? key.toLowerCase() : key];
  if (letter && !event.repeat) { event.preventDefault(); letter(); }
});

function wire() {
  for (const button of document.querySelectorAll('[data-act]')) button.addEventListener('click', () => acts[button.dataset.act]());
  $('undo').addEventListener('click', undo);
  $('one-view').addEventListener('click', () => { if (view !== 'one') turn(); });
  $('grid-view').addEventListener('click', () => { if (view !== 'grid') turn(); });
  $('open-help').addEventListener('click', () => $('help').showModal());
  $('open-bulk').addEventListener('click', openBulk);
  $('bulk-close').addEventListener('click', () => $('bulk').close());
  $('bulk-form').addEventListener('submit', look);
  $('bulk-accept').addEventListener('click', acceptBulk);
  for (const name of ['bulk-pair', 'bulk-score']) $(name).addEventListener('change', () => { bulkTicket = null; $('bulk-accept').hidden = true; });
  $('filter').addEventListener('submit', (event) => { event.preventDefault(); relist(); });
  $('filter').addEventListener('reset', () => setTimeout(() => { $('filter').elements.order.value = about.order; relist(); }));
  $('filter').addEventListener('change', ({ target }) => {
    if (target.name === 'pair') {
      const [given, predicted] = target.value.split(',');
      $('filter').elements.given.value = given ?? '';
      $('filter').elements.predicted.value = predicted ?? '';
    }
    relist();
  });
  $('typed').addEventListener('submit', (event) => {
    event.preventDefault();
    const name = guess();
    if (name === null) { $('class-guess').textContent = 'There is no such class.'; return; }
    $('main').focus({ preventScroll: true });
    decide('label', name);
  });
  $('class-input').addEventListener('input', () => {
    const name = guess();
    $('class-guess').textContent = name === null ? '' : `Enter decides: ${name}`;
  });
  $('who').addEventListener('change', () => kept.who.set(who()));
  $('keys-on').addEventListener('change', (event) => kept.keys.set(event.target.checked));
  $('scroll').addEventListener('scroll', () => { if (!grid.frame) grid.frame = requestAnimationFrame(() => { grid.frame = 0; fill(); }); }, { passive: true });
  $('earlier').addEventListener('click', () => { position = (section - 1) * SECTION; layGrid(); });
  $('later').addEventListener('click', () => { position = (section + 1) * SECTION; layGrid(); });
  new ResizeObserver(() => { if (view === 'grid' && about) layGrid(true); }).observe($('scroll'));
}

function option(value, text) { return make('option', { value, textContent: text }); }

async function begin() {
  about = await ask('api/about');
  version = about.version;
  counts = about.counts;
  $('title').textContent = about.title;
  const form = $('filter').elements, names = about.classes.map((name, label) => option(label, name));
  const words = { doubt: 'least sure first', worth: 'most helpful first', suspicion: 'most suspicious first', random: 'by chance: an audit', row: 'as they lie' };
  form.order.append(...about.orders.map((name) => option(name, words[name] ?? name)));
  form.given.append(...names);
  form.predicted.append(...names.map((each) => each.cloneNode(true)));
  const pairs = about.pairs.map((each) => option(`${each.given},${each.predicted}`, `${className(each.given)} → ${className(each.predicted)} (${number(each.count)})`));
  form.pair.append(...pairs);
  $('bulk-pair').append(...pairs.map((each) => each.cloneNode(true)));
  form.source.append(...about.sources.map((name) => option(name, name)));
  $('source-label').hidden = about.sources.length < 2;
  $('class-names').append(...about.classes.map((name) => option(name, '')));
  $('who').value = kept.who.get('') || about.who;
  $('keys-on').checked = kept.keys.get(true);
  if (about.notes.length) trouble(about.notes.join(' · '));
  if (about.read_only) for (const button of document.querySelectorAll('.actions button, #undo, #open-bulk')) button.disabled = true;
  if (matchMedia('(max-width: 900px)').matches) $('filters').open = false;
  const place = kept.place.get(null);
  filter = place?.filter ?? { ...readFilter(), order: about.order };
  if (filter.asof > version) filter.asof = version;
  view = place?.view ?? 'one';
  showFilter(filter);
  wire();
  showCounts();
  await list(place?.position ?? 0);
  performance.mark('ready');
}

async function poll() {
  if (about && !document.hidden) await changes().catch(failed);
  setTimeout(poll, POLL);
}

begin().catch(failed).finally(poll);
