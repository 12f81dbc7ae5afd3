// The page of `prune4rel review`, beside `examples.js`: deciding, one or many at once, keys and clicks, and the start.

'use strict';

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
