(() => {
'use strict';
const all = (s, e = document) => [...e.querySelectorAll(s)], one = (s, e = document) => e.querySelector(s);
let timer;
const body = document.body;
// On a served page: search as you type, and turns as they are written.
const ask = one('[data-search]');
const fetched = async url => new DOMParser().parseFromString(await (await fetch(url)).text(), 'text/html');
if (ask) ask.addEventListener('input', () => {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const url = '/?q=' + encodeURIComponent(ask.value), page = await fetched(url);
    if (url !== '/?q=' + encodeURIComponent(ask.value)) return;
    one('#list').replaceWith(page.querySelector('#list')); history.replaceState(null, '', url);
  }, 150);
});
if (body.dataset.live) new EventSource(body.dataset.live).addEventListener('grown', async () => {
  const page = await fetched(location.pathname), list = one('#turns'); let added = 0;
  for (const e of [...one('#turns', page).children]) {
    const old = e.id && document.getElementById(e.id);
    if (!old) { list.append(e); if (e.matches('article')) added += 1; } else if (old.textContent !== e.textContent && !old.contains(document.activeElement)) old.replaceWith(e);
  }
  one('.rail').replaceWith(one('.rail', page)); all('[data-js]').forEach(e => { e.hidden = false; }); dispatchEvent(new Event('scroll'));
  if (added) one('#live').textContent = added === 1 ? '1 new turn' : added + ' new turns';
});

})();
