import { stringify } from 'yaml';
import { type ExitCode, usageError } from '../../base/errors.ts';
import { groupBy } from '../../base/group-by.ts';
import type { JsonObject } from '../../base/json.ts';
import { joinLines, type Style, styled, type Text } from '../../base/text/styled.ts';
import { shownChanges, subjectOfHostChange } from '../../fleet/plan/operations.ts';
import type { ClusterChange, PhasePlan, Warning } from '../../host/plan/change.ts';
import { type ClusterName, formatClusterName, type PlanDocument, planDocument, planIsEmpty } from '../../host/plan/document.ts';
import type { FieldChange, Impact } from '../../host/plan/impact.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { DrainForecastDocument } from '../../maintenance/forecast/forecast-document.ts';
import type { Output, Services } from './services.ts';
import { fieldText, shortLines, styledImpact } from './short-plan.ts';
import { type OutputRequest, renderDocument } from './show-document.ts';

/** Options for printing and applying a plan. */
export interface PlanRequest extends OutputRequest {
  /** Exit code 6 for a dry run with pending changes. */
  readonly failsIfChanged: boolean;
  /** Each written line names its source. */
  readonly showOrigin: boolean;
}

/** A request of a command that plans, with its output options. */
export type WithPlan<Request> = Request & { readonly plan: PlanRequest };

/**
 * The plan as printed on stdout.
 * @param output `showsDiff`: with contents, diffs, and the unchanged phases with the reason
 * @param folded the lines of the hosts and their objects, if several hosts share entries
 */
export function renderPlan(plan: PlanDocument, output: OutputRequest, folded?: readonly Text[]): Text {
  if (output.format !== 'text') return renderDocument(plan, output.format);
  const { changes, server, context } = plan.cluster;
  const cluster = changes.length === 0 ? [] : [clusterHead(server === undefined ? null : { server, context })];
  const lines = folded ?? [
    ...plan.hosts.flatMap((host) => hostLines({ ...host, changes: shownChanges(host.changes, output.verbosity) }, output)),
    ...cluster,
    ...planLines(changes, output),
    ...deferredLines(plan.deferred),
  ];
  const end = planIsEmpty(plan) ? 'Nothing to do.' : `${summary(plan, output)}${impactSuffix(plan.highestImpact)}.`;
  return joinLines([...(folded === undefined ? [] : cluster), ...lines, end]);
}

/** Prints a plan on standard output. On a terminal its lines are wrapped at spaces, except for documents and diffs. */
export function showPlanText(output: Pick<Output, 'stdout' | 'prose'>, text: Text, { format, showsDiff = false }: OutputRequest): void {
  if (format !== 'text' || showsDiff || output.prose === undefined) output.stdout(text);
  else output.prose(text);
}

/** `cluster context "admin@shop", https://10.0.0.1:6443`; null: the cluster is not reached, or does not exist yet. */
export function clusterHead(cluster: ClusterName | null): Text {
  return [styled('bold', 'cluster'), ...(cluster === null ? [] : [` ${formatClusterName(cluster)}`])];
}

/** More phases are counted, not named. */
const MOST_PHASES = 6;

/** Phases that wait for the same share a line. */
export function deferredLines(deferred: readonly JsonObject[]): readonly string[] {
  const phases = groupBy(deferred, ({ reason }) => String(reason));
  return [...phases].map(([reason, waiting]) => {
    const names = waiting.map(({ phase }) => String(phase));
    const named =
      names.length <= MOST_PHASES ? names : [...names.slice(0, MOST_PHASES - 1), `${names.length - MOST_PHASES + 1} more phases`];
    return `  > [${named.join(', ')}] later: ${reason}`;
  });
}

/** The lines of changes of a plan document: in short, or with contents and diffs. */
export function planLines(changes: readonly JsonObject[], { showsDiff = false }: Pick<OutputRequest, 'showsDiff'>): readonly Text[] {
  return showsDiff ? changes.flatMap(changeLines) : shortLines(changes);
}

/** `; highest impact: drain`, if a running kubelet is changed. */
export function impactSuffix(highest: Impact | null): string {
  return highest === null ? '' : `; highest impact: ${highest}`;
}

function hostLines(host: PlanDocument['hosts'][number], { showsDiff = false }: OutputRequest): readonly Text[] {
  const name = styled('bold', `host ${host.name}`);
  const noops = showsDiff ? host.noops : [];
  return [
    noops.length > 0 || host.changes.length > 0 ? [name] : [name, ': nothing to change'],
    ...planLines(host.changes, { showsDiff }),
    ...noops.map(({ phase, reason }) => `  = [${phase}] ${reason}`),
  ];
}

/** The lines of a change of a plan document, with its diff. */
export function changeLines(change: JsonObject): readonly Text[] {
  return 'object' in change ? clusterChangeLines(change) : hostChangeLines(change);
}

function hostChangeLines(change: JsonObject): readonly Text[] {
  const { kind, phase, reason } = change;
  const what = subjectOfHostChange(change);
  const sign =
    change.action === 'create' || kind === 'make-directory' || kind === 'copy-directory' || kind === 'put-file' || kind === 'upload-file'
      ? '+'
      : String(kind).startsWith('remove') || kind === 'empty-directory'
        ? '-'
        : '~';
  const size = typeof change.size === 'number' ? `, ${(change.size / 1e6).toFixed(1)} MB` : '';
  const mode = change.mode === undefined ? '' : ` (${change.mode} ${change.owner}${size})`;
  const subject = what === '' ? '' : ` ${what}`;
  const head = `  ${sign} [${phase}] ${String(kind)}${subject}${mode}: ${reason}`;
  const diff = typeof change.diff === 'string' ? diffLines(change.diff, change.origin as JsonObject | undefined) : [];
  const summary = summaryOf(change).map((line) => indented(line, change.action === 'create' ? 'green' : null));
  return [head, ...diff, ...summary, ...impactLines(change)];
}

/** The fields that change for a running kubelet, or the impact of a change without fields if it is not safe. */
function impactLines({ fields, impact }: JsonObject): readonly Text[] {
  if (fields === null) return ['      impact: unknown, because the running configuration of the kubelet cannot be read'];
  if (Array.isArray(fields) && fields.length > 0)
    return (fields as unknown as readonly FieldChange[]).map((field) => ['      ', ...fieldText(field)]);
  return impact === undefined || impact === null || impact === 'safe' ? [] : [['      impact: ', styledImpact(impact as Impact)]];
}

/** A description of a certificate or a kubeconfig, in place of a diff. */
function summaryOf({ certificate, kubeconfig }: JsonObject): readonly string[] {
  const about = Object.entries({ ...(kubeconfig as JsonObject | undefined), ...(certificate as JsonObject | undefined) });
  return about
    .filter(([name]) => SHOWN.includes(name))
    .map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(', ') : value}`);
}

const SHOWN = ['currentContext', 'server', 'subject', 'issuer', 'san', 'extKeyUsage', 'notBefore', 'notAfter', 'publicKey'];

function clusterChangeLines(change: JsonObject): readonly Text[] {
  const { phase, action, reason } = change;
  const object = change.object as JsonObject;
  const metadata = object.metadata as JsonObject;
  const name = metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
  const head = `  ${action === 'create' ? '+' : action === 'delete' ? '-' : '~'} [${phase}] ${action} ${object.kind} ${name}: ${reason}`;
  if (typeof change.diff === 'string' && change.diff !== '') return [head, ...diffLines(change.diff, undefined)];
  const body = stringify(object, { lineWidth: 0, aliasDuplicateObjects: false }).trimEnd().split('\n');
  return [head, ...body.map((line) => indented(line, action === 'create' ? 'green' : null)), ...impactLines(change)];
}

/** The indented diff; with `--show-origin` each written line has its source. */
function diffLines(diff: string, origin: JsonObject | undefined): readonly Text[] {
  const lines = diff.split('\n').filter((line, i, all) => i < all.length - 1 || line !== '');
  const origins = origin === undefined ? null : new OriginFinder(origin);
  return lines.map((line) => indented(`${line}${origins?.comment(line) ?? ''}`, styleOfDiff(line)));
}

function styleOfDiff(line: string): Style | null {
  if (/^(\+\+\+|---)/.test(line)) return 'bold';
  return ({ '+': 'green', '-': 'red', '@': 'cyan' } as const)[line.charAt(0)] ?? null;
}

function indented(line: string, style: Style | null): Text {
  return ['      ', style === null ? line : styled(style, line)];
}

/** Tracks the indentation of YAML lines to find the field of a diff line. */
class OriginFinder {
  readonly #origin: JsonObject;
  #path: { readonly indent: number; readonly key: string }[] = [];

  constructor(origin: JsonObject) {
    this.#origin = origin;
  }

  comment(line: string): string {
    const match = /^[+ ]( *)(?:- )?(?:"([^":\s]+)"|([^":\s]+)):/.exec(line);
    if (!match || line.startsWith('+++')) return '';
    const indent = (match[1] as string).length;
    const key = (match[2] ?? match[3]) as string;
    this.#path = [...this.#path.filter((step) => step.indent < indent), { indent, key }];
    const dotted = this.#path.reduce(
      (path, { key }) => (path === '' ? key : /^[A-Za-z_][\w-]*$/.test(key) ? `${path}.${key}` : `${path}[${key}]`),
      '',
    );
    const origin = this.#origin[dotted];
    return origin === undefined ? '' : `    # ${origin}`;
  }
}

function summary(plan: PlanDocument, { verbosity }: OutputRequest): string {
  const hosts = plan.hosts.filter((host) => host.changes.length > 0);
  const count = hosts.reduce((sum, host) => sum + shownChanges(host.changes, verbosity).length, 0);
  const onHosts = plan.hosts.length === 0 ? '' : `${plural(count, 'change')} on ${plural(hosts.length, 'host')}, `;
  return `${onHosts}${plural(plan.cluster.changes.length, 'change')} in the cluster`;
}

function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}

interface ClusterPlan {
  readonly phase: string;
  readonly plans: readonly PhasePlan[];
  /** Null: unreachable. */
  readonly cluster: ClusterName | null;
  readonly warnings?: readonly Warning[];
  /** The drains before the changes; null: no node is drained. */
  readonly drainForecast?: DrainForecastDocument | null;
}

/** Prints the planned changes of the cluster; exit code 6 with `--exit-code` when the plan is not empty. */
export function showClusterPlan(
  services: Services,
  output: OutputRequest & Pick<PlanRequest, 'failsIfChanged'>,
  { phase, plans, cluster, warnings = [], drainForecast = null }: ClusterPlan,
): ExitCode {
  const { hosts: _, ...document } = planDocument([{ name: '', phases: plans.map((plan) => ({ phase, plan })) }], warnings, cluster);
  const shown = { ...document, hosts: [], ...(drainForecast === null ? {} : { drainForecast }) };
  showPlanText(services.output, renderPlan(shown, output), output);
  return output.failsIfChanged && !planIsEmpty(shown) ? 6 : 0;
}

/** In a dry run prints the planned changes of the cluster, as `showClusterPlan`; otherwise applies them. */
export async function showOrApply(
  services: Services,
  { run, plan }: WithPlan<{ readonly run: RunSettings }>,
  planned: ClusterPlan,
  apply: () => Promise<ExitCode>,
): Promise<ExitCode> {
  return run.dryRun ? showClusterPlan(services, plan, planned) : apply();
}

/** @throws AppError USAGE (exit code 2) if the operator cannot be asked */
export function requireTerminal({ canAsk }: Services, { format }: PlanRequest, title: string): void {
  if (canAsk && format === 'text') return;
  const why = format === 'text' ? 'standard input is not a terminal' : `-o ${format} prints only the plan`;
  throw usageError(`${title} asks before it changes anything, but ${why}`, 'Add --yes. To see the plan first, add --dry-run');
}

/** The plan of some changes of the cluster. */
export function plansOf(changes: readonly ClusterChange[]): readonly PhasePlan[] {
  return [{ changes }];
}
