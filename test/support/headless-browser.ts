import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';

/** The path of a Chromium on this host; null: none. */
export function findChromium(): string | null {
  const named = (process.env.PATH ?? '')
    .split(':')
    .flatMap((directory) => ['chromium', 'chromium-browser'].map((name) => join(directory, name)));
  return named.find((path) => existsSync(path)) ?? null;
}

/** The lowest contrast of a text with its background, by WCAG 2. */
export const LOWEST_CONTRAST = `(() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (rgb) => rgb.slice(0, 3).map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const backgroundOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  let lowest = { ratio: 99, text: '' };
  for (const element of document.querySelectorAll('body *:not(script):not(title)')) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join('').trim();
    if (text === '' || element.getClientRects().length === 0) continue;
    const [a, b] = [luminance(parse(getComputedStyle(element).color)), luminance(backgroundOf(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < lowest.ratio) lowest = { ratio, text: element.tagName + ' ' + text.slice(0, 40) };
  }
  return lowest;
})()`;

export interface View {
  readonly width: number;
  readonly scheme: 'light' | 'dark';
  /** Default: 1000. */
  readonly height?: number;
}

/** A page in a headless Chromium. */
export interface HeadlessBrowser {
  /** Loads a file or a URL. */
  open(place: string, view: View): Promise<void>;
  /** The visible part of the page as PNG; `full`: the whole page. */
  screenshot(options?: { readonly full?: boolean }): Promise<Buffer>;
  /** The JSON value of an expression in the page. */
  evaluate(expression: string): Promise<unknown>;
  close(): Promise<void>;
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
}

/** Starts Chromium, controlled through pipes with the DevTools protocol. */
export async function startBrowser(chromium: string): Promise<HeadlessBrowser> {
  const profile = mkdtempSync(join(tmpdir(), 'report-page-'));
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe', `--user-data-dir=${profile}`];
  const child = spawn(chromium, flags, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const [, , , input, output] = child.stdio as unknown as readonly Duplex[];
  const pending = new Map<number, (message: Message) => void>();
  let onLoad: () => void = () => undefined;
  let rest = '';
  output?.on('data', (chunk: Buffer) => {
    const parts = (rest + chunk).split('\0');
    rest = parts.pop() ?? '';
    for (const part of parts) {
      const message = JSON.parse(part) as Message;
      if (message.id !== undefined) pending.get(message.id)?.(message);
      else if (message.method === 'Page.loadEventFired') onLoad();
    }
  });
  let last = 0;
  const send = (method: string, params: object, sessionId?: string): Promise<Record<string, unknown>> =>
    new Promise((resolve, reject) => {
      const id = ++last;
      pending.set(id, ({ result, error }) =>
        error === undefined ? resolve(result ?? {}) : reject(new Error(`${method}: ${error.message}`)),
      );
      input?.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = (await send('Target.attachToTarget', { targetId, flatten: true })) as { readonly sessionId: string };
  await send('Page.enable', {}, sessionId);
  return {
    screenshot: async ({ full = false } = {}) => {
      const { data } = await send('Page.captureScreenshot', { format: 'png', captureBeyondViewport: full }, sessionId);
      return Buffer.from(data as string, 'base64');
    },
    open: async (place, { width, scheme, height = 1_000 }) => {
      await send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false }, sessionId);
      await send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] }, sessionId);
      const loaded = new Promise<void>((resolve) => {
        onLoad = resolve;
      });
      await send('Page.navigate', { url: place.includes('://') ? place : `file://${place}` }, sessionId);
      await loaded;
    },
    evaluate: async (expression) => {
      const { result, exceptionDetails } = await send(
        'Runtime.evaluate',
        { expression, awaitPromise: true, returnByValue: true },
        sessionId,
      );
      if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
      return (result as { readonly value?: unknown }).value;
    },
    close: async () => {
      child.kill();
      await exited;
      // Helper processes of the browser may write until a moment later.
      rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}
