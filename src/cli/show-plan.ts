import { stringify } from 'yaml';
import { subjectOfHostChange } from '../core/fleet/operations.ts';
import type { JsonObject } from '../core/json.ts';
import type { PlanDocument } from '../core/plan/document.ts';
import { planIsEmpty } from '../core/plan/document.ts';
import { renderDocument } from './show-document.ts';

export type PlanFormat = 'text' | 'json' | 'yaml';

interface TextLook {
  readonly colour: boolean;
  /** Phases that have nothing to do are named, each with why. Default: they are. */
  readonly noops?: boolean;
}

/** The plan as it is printed on stdout. How text looks does not count for other formats. */
export function renderPlan(plan: PlanDocument, format: PlanFormat, look: TextLook): string {
  return format === 'text' ? renderText(plan, look) : renderDocument(plan, format);
}

function renderText(plan: PlanDocument, { colour, noops = true }: TextLook): string {
  const lines: string[] = [];
  for (const host of plan.hosts) {
    const name = bold(`host ${host.name}`, colour);
    lines.push(noops || host.changes.length > 0 ? name : `${name}: nothing to change`);
    for (const change of host.changes) lines.push(...hostChangeLines(change, colour));
    if (noops) for (const noop of host.noops) lines.push(`  = [${noop.phase}] nothing to do: ${noop.reason}`);
  }
  if (plan.cluster.changes.length > 0) {
    lines.push(bold('cluster', colour));
    for (const change of plan.cluster.changes) lines.push(...clusterChangeLines(change, colour));
  }
  for (const { phase, reason } of plan.deferred) lines.push(`  ~ [${phase}] deferred: ${reason}`);
  lines.push(planIsEmpty(plan) ? 'Nothing to do.' : `${summary(plan)}.`);
  return `${lines.join('\n')}\n`;
}

/** A change of a plan document in lines, with its diff. */
export function changeLines(change: JsonObject, colour: boolean): readonly string[] {
  return 'object' in change ? clusterChangeLines(change, colour) : hostChangeLines(change, colour);
}

function hostChangeLines(change: JsonObject, colour: boolean): readonly string[] {
  const { kind, phase, because } = change;
  const what = subjectOfHostChange(change);
  const sign =
    change.action === 'create' || kind === 'make-directory' || kind === 'put-file'
      ? '+'
      : String(kind).startsWith('remove') || kind === 'empty-directory'
        ? '-'
        : '~';
  const size = typeof change.size === 'number' ? `, ${(change.size / 1e6).toFixed(1)} MB` : '';
  const mode = change.mode === undefined ? '' : ` (${change.mode} ${change.owner}${size})`;
  const head = `  ${sign} [${phase}] ${String(kind)} ${what}${mode}: ${because}`.replace(/ +:/, ':');
  const diff = typeof change.diff === 'string' ? diffLines(change.diff, change.origin as JsonObject | undefined, colour) : [];
  const summary = summaryOf(change).map((line) => `      ${paint(line, change.action === 'create' ? '32' : '', colour)}`);
  return [head, ...diff, ...summary];
}

/** What a certificate or a kubeconfig is, in place of a diff. */
function summaryOf({ certificate, kubeconfig }: JsonObject): readonly string[] {
  const about = Object.entries({ ...(kubeconfig as JsonObject | undefined), ...(certificate as JsonObject | undefined) });
  return about
    .filter(([name]) => SHOWN.includes(name))
    .map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(', ') : value}`);
}

const SHOWN = ['currentContext', 'server', 'subject', 'issuer', 'san', 'extKeyUsage', 'notBefore', 'notAfter', 'publicKey'];

function clusterChangeLines(change: JsonObject, colour: boolean): readonly string[] {
  const { phase, action, because } = change;
  const object = change.object as JsonObject;
  const metadata = object.metadata as JsonObject;
  const name = metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
  const body = stringify(object, { lineWidth: 0, aliasDuplicateObjects: false }).trimEnd().split('\n');
  return [
    `  ${action === 'create' ? '+' : action === 'delete' ? '-' : '~'} [${phase}] ${action} ${object.kind} ${name}: ${because}`,
    ...body.map((line) => `      ${paint(line, action === 'create' ? '32' : '', colour)}`),
  ];
}

/** The diff, indented; with `--show-origin` each written line says where it comes from. */
function diffLines(diff: string, origin: JsonObject | undefined, colour: boolean): readonly string[] {
  const lines = diff.split('\n').filter((line, i, all) => i < all.length - 1 || line !== '');
  const origins = origin === undefined ? null : new OriginFinder(origin);
  return lines.map((line) => {
    const shown = `${line}${origins?.comment(line) ?? ''}`;
    return `      ${paint(shown, /^(\+\+\+|---)/.test(line) ? '1' : line.startsWith('+') ? '32' : line.startsWith('-') ? '31' : line.startsWith('@') ? '36' : '', colour)}`;
  });
}

/** Follows the indentation of YAML lines to know which field a line of a diff is. */
class OriginFinder {
  readonly #origin: JsonObject;
  #path: { readonly indent: number; readonly key: string }[] = [];

  constructor(origin: JsonObject) {
    this.#origin = origin;
  }

  comment(line: string): string {
    const match = /^[+ ]( *)(?:- )?("?)([^":\s]+)\2:(.*)$/.exec(line);
    if (!match || line.startsWith('+++')) return '';
    const indent = (match[1] as string).length;
    this.#path = [...this.#path.filter((step) => step.indent < indent), { indent, key: match[3] as string }];
    const dotted = this.#path.reduce(
      (path, { key }) => (path === '' ? key : /^[A-Za-z_][\w-]*$/.test(key) ? `${path}.${key}` : `${path}[${key}]`),
      '',
    );
    const origin = this.#origin[dotted];
    return origin === undefined ? '' : `    # ${origin}`;
  }
}

function summary(plan: PlanDocument): string {
  const hosts = plan.hosts.filter((host) => host.changes.length > 0);
  const count = hosts.reduce((sum, host) => sum + host.changes.length, 0);
  const onHosts = `${plural(count, 'change')} on ${plural(hosts.length, 'host')}`;
  return `${onHosts}, ${plural(plan.cluster.changes.length, 'change')} in the cluster`;
}

function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}

function bold(text: string, colour: boolean): string {
  return paint(text, '1', colour);
}

function paint(text: string, code: string, colour: boolean): string {
  return colour && code !== '' ? `\u001b[${code}m${text}\u001b[0m` : text;
}
