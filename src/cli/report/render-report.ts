import { createHash } from 'node:crypto';
import { escapeUnprintable } from '../../base/text/printable.ts';
import type { Templates } from '../../codec/render-template.ts';
import type { ReportModel } from '../../fleet/report/report-model.ts';
import { type LiveState, PARTS, type Part, pageOf } from './report-page.ts';

/** The parts of a page as HTML, and the texts of its frame. */
export interface RenderedPage {
  readonly title: string;
  readonly footer: string;
  readonly parts: Readonly<Record<Part, string>>;
}

/**
 * Renders the parts of a page. Their templates escape every value.
 * @param version of the program
 * @param live what a run in progress does now; null: it has ended
 */
export function renderParts(model: ReportModel, templates: Templates, version: string, live: LiveState | null = null): RenderedPage {
  const texts = visibleValues(pageOf(model, version, live)) as ReturnType<typeof pageOf>;
  const parts = PARTS.map((part): readonly [Part, string] => {
    const own = part === 'head' || part === 'links' ? texts[part] : { [part]: texts[part] };
    return [part, render(templates, `parts/${part}.html`, own as object)];
  });
  return { title: texts.title, footer: texts.footer, parts: Object.fromEntries(parts) as Record<Part, string> };
}

/**
 * Renders one HTML page without any reference to other files or servers. A Content-Security-Policy with the hashes of the
 * page's own style and script keeps a browser from running anything else, if a value should ever escape.
 * @param options.isLive the page connects to the server that it came from, for the changes of its parts
 */
export function renderPage(page: RenderedPage, templates: Templates, { isLive = false }: { readonly isLive?: boolean } = {}): string {
  const [style, script] = [render(templates, 'style.css', {}), render(templates, 'script.js', {})];
  const csp = [
    "default-src 'none'",
    `style-src '${hashOf(style)}'`,
    `script-src '${hashOf(script)}'`,
    ...(isLive ? ["connect-src 'self'"] : []),
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  return render(templates, 'page.html', { ...page, csp, style, script, isLive });
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
function visibleValues(value: unknown): unknown {
  if (typeof value === 'string') return escapeUnprintable(value);
  if (Array.isArray(value)) return value.map(visibleValues);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, visibleValues(item)]));
  return value;
}
