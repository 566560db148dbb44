import { createHash } from 'node:crypto';
import { escapeUnprintable } from '../../base/text/printable.ts';
import type { Templates } from '../../codec/render-template.ts';
import type { ReportModel } from '../../fleet/report/report-model.ts';
import { pageOf } from './report-page.ts';

/**
 * Renders a report as one HTML page without any reference to other files or servers. The template escapes every
 * value. A Content-Security-Policy with the hashes of the page's own style and script keeps a browser from
 * running anything else, if a value should ever escape.
 * @param version of the program
 */
export function renderReport(model: ReportModel, templates: Templates, version: string): string {
  const [style, script] = [partOf(templates, 'style.css'), partOf(templates, 'script.js')];
  const csp = [
    "default-src 'none'",
    `style-src '${hashOf(style)}'`,
    `script-src '${hashOf(script)}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  const page = templateOf(templates, 'page.html');
  return page({ ...(visibleValues(pageOf(model, version)) as object), csp, style, script }, NO_HELPERS);
}

const NO_HELPERS = { helpers: {} };

function templateOf(templates: Templates, name: string) {
  const template = templates.get(`report/${name}`);
  if (template === undefined) throw new Error(`no template report/${name}`);
  return template;
}

function partOf(templates: Templates, name: string): string {
  return templateOf(templates, name)({}, NO_HELPERS);
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
