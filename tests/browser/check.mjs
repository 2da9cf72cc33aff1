// Pages in a real browser: no console message, no request, no finding of axe-core; keys, filters and folds work.
//
// check.mjs UNDERTEXT CHROMIUM [--shots FOLDER] [--bench]
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRequire } from 'node:module';
import { id, session } from './session.mjs';

const require = createRequire(path.join(process.cwd(), 'x.js'));
const { chromium } = require('playwright-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const [undertext, executablePath, ...options] = process.argv.slice(2);
const shots = options.includes('--shots') ? options[options.indexOf('--shots') + 1] : null;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'undertext-browser-'));
const env = { ...process.env, HOME: folder, XDG_DATA_HOME: '', XDG_STATE_HOME: '', XDG_CONFIG_HOME: '', UNDERTEXT_STORE: '' };
const run = (...args) => execFileSync(undertext, args, { cwd: folder, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const browser = await chromium.launch({ executablePath, args });
let checks = 0;

// A page that fails the check on any message or request that is not its own.
async function open(address, { width = 1000, colorScheme = 'light', own = () => false } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, reducedMotion: 'reduce', bypassCSP: false });
  const page = await context.newPage();
  page.faults = [];
  page.on('console', message => page.faults.push(`console: ${message.text()}`));
  page.on('pageerror', error => page.faults.push(`error: ${error.message}`));
  page.on('request', request => {
    const url = request.url();
    if (url !== address.split('#')[0] && !url.startsWith('data:') && !own(url)) page.faults.push(`request: ${url}`);
  });
  await page.goto(address);
  return page;
}

async function close(page) {
  assert.deepEqual(page.faults, [], 'the page says or asks for something');
  checks += 1;
  await page.context().close();
}

// Whether something comes true within ten seconds: a page does what a key or a link asks for when it gets to it.
const until = (page, test, arg) => page.waitForFunction(test, arg, { timeout: 10_000 }).then(() => true, () => false);
const shows = (page, selector, state = 'visible') => page.waitForSelector(selector, { state, timeout: 10_000 }).then(() => true, () => false);

async function axed(page, what) {
  // The page's policy forbids scripts of others, so axe-core runs in the debugger's world.
  const client = await page.context().newCDPSession(page);
  const { frameTree } = await client.send('Page.getFrameTree');
  const { executionContextId } = await client.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id, worldName: 'axe' });
  await client.send('Runtime.evaluate', { expression: axe, contextId: executionContextId });
  const { result } = await client.send('Runtime.evaluate', {
    expression: `axe.run(document, { resultTypes: ['violations'] }).then(found => JSON.stringify(found.violations.map(one => [one.id, one.nodes.slice(0, 3).map(node => node.target.join(' ') + ': ' + (node.any[0]?.message ?? ''))])))`,
    contextId: executionContextId, awaitPromise: true, returnByValue: true,
  });
  assert.deepEqual(JSON.parse(result.value), [], `axe-core finds something in ${what}`);
  checks += 1;
}

const name = 'talk.jsonl';
fs.writeFileSync(path.join(folder, name), session());
run('export', name, '-o', 'talk.html', '--reverted', '--thinking');
const address = `file://${folder}/talk.html`;

for (const colorScheme of ['light', 'dark']) {
  for (const width of [390, 1000, 1600]) {
    const page = await open(address, { width, colorScheme });
    if (shots) await page.screenshot({ path: path.join(shots, `page-${width}-${colorScheme}.png`) });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, `${width}: the page scrolls sideways`);
    if (width === 1000) {
      await page.evaluate(() => document.querySelectorAll('details').forEach(it => { it.open = true; }));
      await axed(page, `the page, ${colorScheme}`);
      for (const view of ['files', 'commands', 'lost']) {
        await page.click(`.views a[href="#${view}"]`);
        assert.ok(await shows(page, `#${view}`) && await shows(page, '#turns', 'hidden'), view);
        await axed(page, view);
      }
    }
    await close(page);
  }
}

{
  const page = await open(address);
  const current = () => page.evaluate(() => document.querySelector('.rail a[aria-current]')?.getAttribute('href'));
  const found = text => until(page, it => document.querySelector('.find output').textContent.startsWith(it), text);
  const press = async (...all) => { for (const key of all) { await page.keyboard.press(key); await page.waitForTimeout(120); } };
  const first = await current();
  await press('J', 'J');
  assert.ok(await until(page, it => document.querySelector('.rail a[aria-current]')?.getAttribute('href') !== it, first), 'J goes to the next turn');
  await press('K', 'K', 'j', 'k');
  for (const [key, selector] of [['c', '.boundary'], ['r', '.fork'], ['f', '.failed, [data-is~=bad]'], ['e', '.change']]) {
    await page.evaluate(() => scrollTo(0, 0));
    await press('g', key);
    const is = await until(page, s => [...document.querySelectorAll(s)].some(e => { const y = e.getBoundingClientRect().top; return y > -5 && y < 400; }), selector);
    assert.ok(is, `g ${key} shows ${selector}`);
  }
  await press('t');
  assert.ok(await until(page, () => !document.querySelector('.run details:not([open])')), 't opens calls');
  await press('t');
  assert.ok(await shows(page, '.run', 'hidden'), 't hides calls');
  await press('t', '/');
  await page.keyboard.type('watered for 3 ');
  assert.ok(await found('1 of '), 'the first hit');
  await page.keyboard.press('Enter');
  assert.ok(await found('2 of '), 'the second hit');
  await press('Escape');
  assert.ok(await shows(page, '.find', 'hidden'), 'Escape closes the search');
  await press('?');
  assert.ok(await shows(page, '#keys'), '? shows the keys');
  await axed(page, 'the keys');
  await press('Escape', 'L');
  assert.ok(await shows(page, '#lost'), 'L shows what was lost');
  await page.click('.views a[href="#turns"]');
  await page.click('button[data-filter=bad]');
  const shown = await until(page, () => [...document.querySelectorAll('#turns > article')].filter(e => e.getClientRects().length).every(e => e.dataset.is.includes('bad')));
  assert.ok(shown, 'the filter shows failures only');
  await page.click('button[data-filter=bad]');
  await page.evaluate(() => document.querySelectorAll('.fork details').forEach(it => { it.open = false; }));
  await press('c');
  assert.ok(await shows(page, '.compare .sides'), 'c compares');
  // Every link leads somewhere on the page.
  const broken = await page.evaluate(() => [...document.querySelectorAll('a[href^="#"]')].map(a => decodeURIComponent(a.getAttribute('href').slice(1))).filter(id => !document.getElementById(id)));
  assert.deepEqual(broken, [], 'broken links');
  const pdf = await page.pdf({ format: 'A4' });
  assert.ok(pdf.length > 10_000, 'the page prints');
  if (shots) fs.writeFileSync(path.join(shots, 'page.pdf'), pdf);
  await close(page);
}

{
  const page = await open(`${address}#review`);
  assert.ok(await until(page, () => document.body.classList.contains('review') && document.querySelectorAll('mark').length > 0), 'review marks');
  await close(page);
}

{
  const live = path.join(folder, '.claude/projects/-home-ada-garden', `${id}.jsonl`);
  fs.mkdirSync(path.dirname(live), { recursive: true });
  fs.writeFileSync(live, session());
  run('import');
  const server = spawn(undertext, ['serve', '--port', '0'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'ignore'] });
  const entry = await new Promise(done => server.stdout.once('data', data => done(String(data).trim())));
  const origin = new URL(entry).origin;
  try {
    const page = await open(entry, { own: url => url.startsWith(origin) });
    assert.equal(page.url(), `${origin}/`, 'the token is in no address');
    await axed(page, 'the list');
    await page.fill('#q', 'flood');
    await page.waitForSelector('.hits');
    await page.click('.sessions a');
    await page.waitForSelector('#turns');
    await axed(page, 'a served session');
    if (shots) await page.screenshot({ path: path.join(shots, 'served.png') });
    const before = await page.evaluate(() => document.querySelectorAll('#turns > article').length);
    fs.appendFileSync(live, session({ turns: 9 }).slice(session().length));
    await page.waitForFunction(n => document.querySelectorAll('#turns > article').length > n, before, { timeout: 30_000 });
    assert.ok(await until(page, () => document.querySelector('#live').textContent.includes('new turn')), 'the page says that it grew');
    await page.goto(`${origin}/s/${page.url().split('/s/')[1].split('#')[0]}/operations`);
    await axed(page, 'operations');
    await page.goto(`${origin}/`);
    await page.click('a[href="/stats"]');
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      await axed(page, `charts, ${colorScheme}`);
      for (const width of [390, 1000, 1600]) {
        await page.setViewportSize({ width, height: 900 });
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, `${width}: charts scroll sideways`);
        if (shots) await page.screenshot({ path: path.join(shots, `charts-${width}-${colorScheme}.png`), fullPage: true });
      }
    }
    const styled = () => new Set(['.p', '.l0'].map(it => getComputedStyle(document.querySelector(it)).fill)).size === 2;
    assert.ok(await until(page, styled), 'the style of the charts applies');
    await close(page);
  } finally {
    server.kill();
  }
}

if (options.includes('--bench')) {
  fs.writeFileSync(path.join(folder, 'long.jsonl'), session({ turns: 250, calls: 18, lines: 60 }));
  run('export', 'long.jsonl', '-o', 'long.html', '--tools', 'short', '--reverted');
  const entries = fs.readFileSync(path.join(folder, 'long.jsonl'), 'utf8').split('\n').length - 1;
  const bytes = fs.statSync(path.join(folder, 'long.html')).size;
  const page = await open('about:blank', { own: () => true });
  await page.addInitScript(() => {
    window.longest = 0;
    new PerformanceObserver(list => list.getEntries().forEach(it => { window.longest = Math.max(window.longest, it.duration); })).observe({ type: 'longtask', buffered: true });
  });
  await page.goto(`file://${folder}/long.html`);
  await page.waitForTimeout(1500);
  const [paint, longest] = await page.evaluate(() => [performance.getEntriesByName('first-contentful-paint')[0]?.startTime, window.longest]);
  console.log(`page             ${entries} entries, ${(bytes / 1e6).toFixed(1)} MB, first paint ${Math.round(paint)} ms, longest task ${Math.round(longest)} ms`);
}

await browser.close();
fs.rmSync(folder, { recursive: true });
console.log(`${checks} checks of pages in a browser`);
