import { createHash } from 'node:crypto';
import { escapeUnprintable } from '../../base/text/printable.ts';
import type { Templates } from '../../codec/render-template.ts';
import type { ReportModel } from '../../fleet/report/report-model.ts';
import type { LiveView } from '../output/live-view.ts';
import { pageOf } from './report-page.ts';

/** The parts of a page as HTML, and the texts of its frame. */
export interface RenderedPage {
  readonly title: string;
  readonly footer: string;
  /** By name: `head`, `links`, then the others in their order on the page. */
  readonly parts: Readonly<Record<string, string>>;
}

/** The values of a page, for the templates of its parts. Null hides a part. */
export interface PageTexts extends Pick<RenderedPage, 'title' | 'footer'> {
  readonly parts: Readonly<Record<string, unknown>>;
}

/**
 * Renders the parts of a page. Their templates escape every value.
 * @param version of the program
 * @param live what a run in progress does now; null: it has ended
 */
export function renderParts(model: ReportModel, templates: Templates, version: string, live: LiveView | null = null): RenderedPage {
  return renderTexts(pageOf(model, version, live), templates);
}

/** Renders each part with the template of its name. */
export function renderTexts(page: PageTexts, templates: Templates): RenderedPage {
  const { title, footer, parts } = visibleValues(page) as PageTexts;
  const rendered = Object.entries(parts).map(([part, values]) => {
    const own = part === 'head' || part === 'links' ? values : { [part]: values };
    return [part, render(templates, `parts/${part}.html`, own as object)] as const;
  });
  return { title, footer, parts: Object.fromEntries(rendered) };
}

/**
 * Renders one HTML page without any reference to other files or servers. A Content-Security-Policy with the hashes of the
 * page's own style and script keeps a browser from running anything else, if a value should ever escape.
 * @param options.isLive the page connects to the server that it came from, for the changes of its parts
 * @param options.acts the page has buttons for actions of that server
 */
export function renderPage(
  page: RenderedPage,
  templates: Templates,
  { isLive = false, acts = false }: { readonly isLive?: boolean; readonly acts?: boolean } = {},
): string {
  const style = render(templates, 'style.css', {});
  const scripts = ['script.js', ...(acts ? ['actions.js'] : [])].map((name) => render(templates, name, {}));
  const { head = '', links = '', ...others } = page.parts;
  const parts = Object.entries(others).map(([name, html]) => ({ name, html }));
  const csp = [
    "default-src 'none'",
    `style-src '${hashOf(style)}'`,
    `script-src ${scripts.map((script) => `'${hashOf(script)}'`).join(' ')}`,
    ...(isLive ? ["connect-src 'self'"] : []),
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  return render(templates, 'page.html', { title: page.title, footer: page.footer, head, links, parts, csp, style, scripts, isLive, acts });
}

/** A report as one HTML page. */
export function renderReport(model: ReportModel, templates: Templates, version: string): string {
  return renderPage(renderParts(model, templates, version), templates);
}

const NO_HELPERS = { helpers: {} };

function render(templates: Templates, name: string, values: object): string {
  const template = templates.get(`report/${name}`);
  if (template === undefined) throw new Error(`no template report/${name}`);
  return template(values, NO_HELPERS);
}

/** @see https://www.w3.org/TR/CSP3/#grammardef-hash-source */
function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}

/** Escapes control characters in all texts: bidirectional controls could reorder what a reader sees. */
export function visibleValues(value: unknown): unknown {
  if (typeof value === 'string') return escapeUnprintable(value);
  if (Array.isArray(value)) return value.map(visibleValues);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, visibleValues(item)]));
  return value;
}
