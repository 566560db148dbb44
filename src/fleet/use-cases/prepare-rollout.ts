import { isAppError, type Problem } from '../../base/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import { findSecret } from '../../base/text/find-secret.ts';
import type { PathSegment } from '../../codec/field-path.ts';
import { parseSource, type SourceDocument, sourceToJson } from '../../codec/source.ts';
import {
  GATE_KINDS,
  kindOf,
  type PreparedGate,
  type PreparedRollout,
  type RolloutSettings,
} from '../../maintenance/gates/rollout-settings.ts';
import { invalidFleetValue, mutuallyExclusiveMembers } from '../file/fleet-problems.ts';
import { fileLayer } from '../file/layer.ts';
import { ProblemCollector } from '../file/problem-collector.ts';

type Gate = NonNullable<RolloutSettings['gates']>[number];
/** Where relative paths start. */
interface Paths {
  readonly directory: string;
  /** The absolute path of a path in the file. */
  absolute(path: string): string;
}
type Report = (steps: readonly PathSegment[], problem: Problem) => void;

/**
 * Validates gates and windows, reads the manifests of Jobs, and makes paths absolute.
 * @param at.path of the settings in the document
 */
export async function prepareRollout(
  services: LocalFiles,
  { gates = [], ...settings }: RolloutSettings,
  { document, path, paths }: { readonly document: SourceDocument; readonly path: readonly PathSegment[]; readonly paths: Paths },
): Promise<{ readonly rollout: PreparedRollout; readonly problems: readonly Problem[] }> {
  const findings = new ProblemCollector();
  const { place } = fileLayer('rollout', {}, document, path);
  const report: Report = (steps, problem) => findings.add(problem, place(steps));
  const prepared: PreparedGate[] = [];
  for (const [i, gate] of gates.entries()) {
    const reportGate: Report = (steps, problem) => report(['gates', i, ...steps], problem);
    if (gates.findIndex(({ name }) => name === gate.name) !== i)
      reportGate(['name'], invalidFleetValue(`duplicate gate ${gate.name}`, 'Rename one of the two gates'));
    validateGate(gate, reportGate);
    prepared.push(await prepareGate(services, gate, { paths, report: reportGate }));
  }
  for (const [i, { endTime, duration }] of (settings.windows ?? []).entries())
    if ((endTime === undefined) === (duration === undefined))
      report(['windows', i], invalidFleetValue('a window must have one end', 'Set either endTime or duration'));
  return { rollout: { ...settings, gates: prepared }, problems: findings.list() };
}

function validateGate(gate: Gate, report: Report): void {
  const kinds = GATE_KINDS.filter((kind) => gate[kind] !== undefined);
  if (kinds.length === 0) report([], invalidFleetValue('a gate must check something', `Set one of ${GATE_KINDS.join(', ')}`));
  if (kinds.length > 1) report([kinds[1] as string], mutuallyExclusiveMembers(kinds[0] as string, kinds[1] as string));
  const { address = '', thresholdRange = {}, bearerTokenFile } = gate.prometheus ?? {};
  const { min, max } = thresholdRange;
  if (kindOf(gate) !== 'prometheus') return;
  if (min === undefined && max === undefined)
    report(['prometheus', 'thresholdRange'], invalidFleetValue('the range has no limit', 'Set min, max or both'));
  if (min !== undefined && max !== undefined && min > max)
    report(['prometheus', 'thresholdRange'], invalidFleetValue(`min ${min} is greater than max ${max}`));
  if (bearerTokenFile !== undefined && address.startsWith('http:'))
    report(
      ['prometheus', 'bearerTokenFile'],
      invalidFleetValue('a token is not sent without TLS', 'Use an address with https, or remove bearerTokenFile'),
    );
}

async function prepareGate(
  services: LocalFiles,
  { job, prometheus, command, ...gate }: Gate,
  { paths, report }: { readonly paths: Paths; readonly report: Report },
): Promise<PreparedGate> {
  const pathOf = async (path: string, steps: readonly string[]): Promise<string> => {
    const found = paths.absolute(path);
    if (!(await services.input.exists(found))) report(steps, invalidFleetValue(`${path} does not exist`, `Looked for ${found}`));
    return found;
  };
  const [program = ''] = command ?? [];
  if (program.includes('/')) await pathOf(program, ['command']);
  const { bearerTokenFile, caFile, ...query } = prometheus ?? {};
  const files = {
    ...(bearerTokenFile === undefined ? {} : { bearerTokenFile: await pathOf(bearerTokenFile, ['prometheus', 'bearerTokenFile']) }),
    ...(caFile === undefined ? {} : { caFile: await pathOf(caFile, ['prometheus', 'caFile']) }),
  };
  return {
    ...gate,
    directory: paths.directory,
    ...(command === undefined ? {} : { command }),
    ...(prometheus === undefined ? {} : { prometheus: { ...(query as typeof prometheus), ...files } }),
    ...(job === undefined ? {} : { job: await readJob(services, job, { pathOf, report }) }),
  };
}

/** The manifest of a Job; problems are reported, and the result then must not be used. */
async function readJob(
  services: LocalFiles,
  { manifest: path, namespace }: NonNullable<Gate['job']>,
  { pathOf, report }: { readonly pathOf: (path: string, steps: readonly string[]) => Promise<string>; readonly report: Report },
): Promise<NonNullable<PreparedGate['job']>> {
  const steps = ['job', 'manifest'];
  const found = await pathOf(path, steps);
  const none = { manifest: {}, namespace: '' };
  if (!(await services.input.exists(found))) return none;
  const read = await services.input.readText(found).catch((error: unknown) => {
    if (!isAppError(error)) throw error;
    report(steps, error.problems[0] as Problem);
    return null;
  });
  if (read === null) return none;
  const { documents, problems } = parseSource(read, found);
  for (const problem of problems) report(steps, { ...problem, message: `${path}: ${problem.message}` });
  const roots = documents.flatMap(({ root }) => (root === null ? [] : [sourceToJson(root)]));
  const [job] = roots;
  const why =
    problems.length > 0
      ? null
      : roots.length !== 1
        ? 'the file must have one document'
        : isJsonObject(job)
          ? jobIssue(job)
          : 'not an object';
  if (why !== null) report(steps, invalidFleetValue(`${path} is not the manifest of a Job: ${why}`));
  if (!isJsonObject(job)) return none;
  // The manifest becomes part of saved plans.
  if (findSecret(read) !== null || hasSecretVariable(job))
    report(steps, {
      code: 'FLEET_INLINE_SECRET',
      message: `${path} has a text that looks like a secret, which would become part of saved plans`,
      hint: 'Use a Secret of the cluster, e.g. with valueFrom.secretKeyRef',
    });
  const own = isJsonObject(job.metadata) && typeof job.metadata.namespace === 'string' ? job.metadata.namespace : 'default';
  return { manifest: job as NonNullable<PreparedGate['job']>['manifest'], namespace: namespace ?? own };
}

/** Whether a variable of a container, `{name: DB_PASSWORD, value: ...}`, has a text that looks like a secret. */
function hasSecretVariable(value: Json): boolean {
  if (Array.isArray(value)) return value.some(hasSecretVariable);
  if (!isJsonObject(value)) return false;
  const { name, value: text } = value;
  const isSecret = typeof name === 'string' && typeof text === 'string' && findSecret(`${name}=${text}`) !== null;
  return isSecret || Object.values(value).some(hasSecretVariable);
}

/** What the API server would refuse first; null: nothing. */
function jobIssue({ apiVersion, kind, spec }: JsonObject): string | null {
  if (apiVersion !== 'batch/v1' || kind !== 'Job') return 'apiVersion must be batch/v1 and kind Job';
  const template = isJsonObject(spec) && isJsonObject(spec.template) ? spec.template.spec : undefined;
  if (!isJsonObject(template)) return 'spec.template.spec does not exist';
  if (!Array.isArray(template.containers) || template.containers.length === 0) return 'spec.template.spec.containers is empty';
  const { restartPolicy } = template;
  return restartPolicy === 'Never' || restartPolicy === 'OnFailure' ? null : 'spec.template.spec.restartPolicy must be Never or OnFailure';
}
