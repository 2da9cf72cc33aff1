(() => {
'use strict';
const all = (s, e = document) => [...e.querySelectorAll(s)], one = (s, e = document) => e.querySelector(s);
const body = document.body, views = ['turns', 'files', 'commands', 'lost'];
const say = text => { one('#live').textContent = text; };
const show = () => all('[data-js]').forEach(e => { e.hidden = false; });
const seen = e => e.getClientRects().length > 0;
const top = e => e.getBoundingClientRect().top;
const reveal = e => { for (let p = e.parentElement; p; p = p.parentElement) if (p.tagName === 'DETAILS') p.open = true; };
const go = e => { if (!e) return; reveal(e); e.scrollIntoView({ block: 'start' }); if (e.tabIndex < 0) e.tabIndex = -1; e.focus({ preventScroll: true }); };
const store = (k, v) => { try { if (v === undefined) return localStorage[k]; localStorage[k] = v; } catch { } };

// Views: one at a time.
const view = name => {
  if (!one('#' + name)) return;
  body.dataset.view = name;
  all('.views a').forEach(a => a.getAttribute('href') === '#' + name ? a.setAttribute('aria-current', 'true') : a.removeAttribute('aria-current'));
};
const arrive = () => {
  const id = decodeURIComponent(location.hash.slice(1));
  body.classList.toggle('review', id === 'review');
  if (id === 'review') { hits = all('mark').map(e => { const r = new Range(); r.selectNode(e); return r; }); step(1); return; }
  if (views.includes(id)) return view(id);
  const e = id && document.getElementById(id);
  if (e && e.closest('#turns')) { if (body.dataset.filter) filter(''); view('turns'); go(e); }
};

// The turn that is being read, on the rail and on the strip.
const turns = () => all('#turns > article').filter(seen);
const inView = e => e && top(e) > -9 && top(e) < innerHeight;
const current = () => {
  const line = innerHeight / 3, list = turns(), at = document.activeElement.closest('#turns > article');
  return inView(at) ? at : list.filter(t => top(t) < line).pop() || list[0];
};
let waits = false;
const here = () => {
  waits = false;
  const turn = current(), id = turn && turn.id;
  all('.rail a[aria-current]').forEach(a => a.removeAttribute('aria-current'));
  const link = id && one(`.rail a[href="#${CSS.escape(id)}"]`);
  if (link) { link.setAttribute('aria-current', 'true'); const r = one('.rail'), y = link.offsetTop; if (y < r.scrollTop + 40 || y > r.scrollTop + r.clientHeight - 60) r.scrollTop = y - r.clientHeight / 3; }
  const bar = id && one(`[data-to="${CSS.escape(id)}"] .hit`);
  if (bar) one('#here').setAttribute('x', bar.getAttribute('x'));
};
addEventListener('scroll', () => { if (!waits) { waits = true; requestAnimationFrame(here); } }, { passive: true });
const next = (selector, by = 1) => {
  const list = all(selector).filter(e => seen(e.closest('details:not([open])') || e));
  const line = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop), at = list.indexOf(document.activeElement);
  const to = inView(list[at]) ? list[at + by] : by > 0 ? list.find(e => top(e) > line + 8) : list.filter(e => top(e) < line - 8).pop();
  to ? go(to) : say('No more');
};

// Find.
let hits = [], at = -1, timer;
const lit = (name, ranges) => { if (window.Highlight) ranges.length ? CSS.highlights.set(name, new Highlight(...ranges)) : CSS.highlights.delete(name); };
const step = by => {
  if (!hits.length) return;
  at = (at + by + hits.length) % hits.length;
  const e = hits[at].startContainer.parentElement || hits[at].startContainer;
  reveal(e); lit('hit', [hits[at]]); e.scrollIntoView({ block: 'center' });
  const off = hits.filter(r => r.startContainer.parentElement?.closest('.reverted, .fork')).length;
  one('.find output').textContent = `${at + 1} of ${hits.length}${off ? `, ${off} in reverted turns` : ''}`;
};
const find = text => {
  hits = []; at = -1; text = text.toLowerCase();
  if (text) {
    view('turns');
    const walk = document.createTreeWalker(one('#turns'), NodeFilter.SHOW_TEXT);
    for (let n; hits.length < 5000 && (n = walk.nextNode());) {
      const words = n.data.toLowerCase();
      for (let i = words.indexOf(text); i >= 0 && words.length === n.data.length; i = words.indexOf(text, i + text.length)) {
        const r = new Range(); r.setStart(n, i); r.setEnd(n, i + text.length); hits.push(r);
      }
    }
  }
  lit('find', hits); lit('hit', []);
  one('.find output').textContent = text && !hits.length ? 'none' : '';
  step(1);
};
const box = one('.find'), input = box && one('input', box);
if (box) {
  input.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(find, 120, input.value); });
  box.addEventListener('submit', e => { e.preventDefault(); step(1); });
}

// Filters and folds.
const filter = kind => {
  const is = kind && body.dataset.filter !== kind;
  is ? body.dataset.filter = kind : delete body.dataset.filter;
  all('[data-filter]:not(body)').forEach(b => b.setAttribute('aria-pressed', is && b.dataset.filter === kind));
  all('[data-is]').forEach(e => e.classList.toggle('on', is && e.dataset.is.split(' ').includes(kind)));
  all('.fork').forEach(e => e.classList.toggle('on', is && kind === 'back'));
  if (is) view('turns');
  here();
};
const tools = () => {
  const to = { none: 'short', short: 'full', full: 'none' }[body.dataset.tools || 'short'];
  body.dataset.tools = to; one('#tools').textContent = to;
  all('.run details').forEach(d => { d.open = to === 'full' || d.classList.contains('change'); });
  say('Tools: ' + to);
};
const copy = text => { navigator.clipboard?.writeText(text).then(() => say('Copied'), () => say('Cannot copy')); };
const link = turn => location.href.split('#')[0] + '#' + turn.id;
const acts = {
  find: () => { box.hidden = false; input.focus(); input.select(); },
  unfind: () => { box.hidden = true; input.value = ''; find(''); },
  next: () => step(1), previous: () => step(-1), tools,
  keys: () => one('#keys').showModal(),
  prompt: e => copy(one('.prompt', e.closest('article')).textContent),
  link: e => copy(link(e.closest('article'))),
};
addEventListener('click', e => {
  const to = e.target.closest('[data-to]'), act = e.target.closest('[data-do]'), by = e.target.closest('button[data-filter]');
  if (to) { location.hash = to.dataset.to; arrive(); }
  if (act) acts[act.dataset.do](act);
  if (by) filter(by.dataset.filter);
});

// Keys.
let leads = false;
const keys = {
  j: () => next('#turns .part, #turns > article, .fork'), k: () => next('#turns .part, #turns > article, .fork', -1),
  J: () => next('#turns > article'), K: () => next('#turns > article', -1),
  '/': acts.find, n: acts.next, N: acts.previous, t: tools, '?': acts.keys,
  c: () => { const list = all('.compare').filter(d => seen(d)), d = list.find(d => top(d) > 0) || list[0]; if (d) { d.open = !d.open; go(d); } },
  L: () => { location.hash = 'lost'; },
  y: () => { const turn = current(), quote = getSelection().toString().trim(); if (turn) copy((quote ? quote.replace(/^/gm, '> ') + '\n\n' : '') + link(turn)); },
};
const leaps = { c: '.boundary', r: '.fork', f: '.failed, [data-is~=bad]', e: '.change' };
const single = one('#single');
if (store('keys') === 'off') single.checked = false;
single.addEventListener('change', () => store('keys', single.checked ? 'on' : 'off'));
addEventListener('keydown', e => {
  if (e.key === 'Escape' && box && !box.hidden) return acts.unfind();
  if (!box || e.ctrlKey || e.metaKey || e.altKey || !single.checked || one('dialog[open]') || e.target.matches('input, textarea, select')) return;
  const leap = leads && leaps[e.key], key = leaps[e.key] && leads ? () => next(leap) : keys[e.key];
  leads = e.key === 'g';
  if (key) { e.preventDefault(); key(); }
});
let opened = [];
addEventListener('beforeprint', () => { opened = all('details:not([open])'); opened.forEach(d => { d.open = true; }); });
addEventListener('afterprint', () => opened.forEach(d => { d.open = false; }));

show();
if (innerWidth <= 820 && one('.rail details')) one('.rail details').open = false;
if (one('#turns')) { view('turns'); here(); arrive(); }
addEventListener('hashchange', arrive);
})();
