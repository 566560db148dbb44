import { dirname } from 'node:path';
import { AppError, type ExitCode, isAppError, type Problem, usageError } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import { inParallel } from '../fleet/in-parallel.ts';
import type { ResolvedFleet } from '../fleet/model.ts';
import { type Selection, selectHosts } from '../fleet/select.ts';
import { fleetSshTarget } from '../fleet/ssh-target.ts';
import type { FleetHostsRequest } from '../fleet/use-cases/fleet-request.ts';
import { readSshOptions } from '../fleet/use-cases/host-access.ts';
import { readFleet } from '../fleet/use-cases/load-fleet.ts';
import { hostKeyMismatch, hostKeyRevoked } from '../host/host-problems.ts';
import type { HostKeys, ShownHostKey } from '../ssh/host-keys.ts';
import { type HostKey, hostKeyFingerprint, hostKeyTypeName, knownHostsNames } from '../ssh/known-hosts.ts';
import type { SshTarget } from '../ssh/target.ts';
import type { Services } from './services.ts';
import { type DocumentFormat, renderDocument } from './show-document.ts';

/** What was found about one host, or one on the way. */
interface Finding {
  readonly target: SshTarget;
  readonly shown?: ShownHostKey;
  readonly failure?: readonly Problem[];
  /** The file the key was written to now. */
  readonly recorded?: string;
}

/** `fleet trust`. */
export interface FleetTrustRequest extends FleetHostsRequest {
  /** Hosts at once. */
  readonly parallel: number;
  /** Record the keys without a confirmation. */
  readonly yes: boolean;
  /** Only show the keys. */
  readonly dryRun: boolean;
  readonly format: DocumentFormat;
}

/** `fleet trust`: the hosts on the way first, as their keys must be known to look further. */
export async function runFleetTrust(services: Services, request: FleetTrustRequest): Promise<ExitCode> {
  const fleet = await readFleet(services, request);
  const keys = await services.openHostKeys(await readSshOptions(services, request.connection));
  const findings: Finding[] = [];
  for (const round of roundsOf(targetsOf(fleet, keys, request.selection))) {
    const found = await inParallel(round, request.parallel, (target) => inspect(keys, target, services.signal));
    services.signal.throwIfAborted();
    const unknown = found.filter(isUnknown);
    const record = unknown.length > 0 && !request.dryRun && (await mayRecord(services, unknown, request.yes));
    findings.push(...(record ? await recordAll(keys, found) : found));
  }
  show(services, findings, request.format);
  const problems = findings.flatMap(problemsOf);
  if (problems.length > 0) throw new AppError(problems, { exitCode: findings.some(isGood) ? 4 : 1 });
  return findings.some(isUnknown) ? 6 : 0;
}

function isUnknown({ shown, recorded }: Finding): boolean {
  return shown?.verdict.kind === 'unknown' && recorded === undefined;
}

function isGood({ shown, recorded }: Finding): boolean {
  return shown?.verdict.kind === 'known' || recorded !== undefined;
}

/** Hosts and all hosts on the way to them, each once, those nearer to us first. */
function targetsOf(fleet: ResolvedFleet, { config, overrides }: HostKeys, selection: Selection): readonly SshTarget[] {
  const hosts = selectHosts(fleet.hosts, selection);
  const targets = new Map<string, SshTarget>();
  const directory = fleet.file === '-' ? '' : dirname(fleet.file);
  for (const host of hosts) {
    const target = fleetSshTarget(host, config, { directory, overrides });
    for (const [i, hop] of [...target.proxyJump, target].entries()) {
      const route = target.proxyJump.slice(0, i);
      const key = [...route, hop].map((each) => knownHostsNames(each).name).join(' ');
      if (!targets.has(key)) targets.set(key, { ...hop, proxyJump: route });
    }
  }
  return [...targets.values()];
}

function roundsOf(targets: readonly SshTarget[]): readonly (readonly SshTarget[])[] {
  const depths = [...new Set(targets.map(({ proxyJump }) => proxyJump.length))].sort((a, b) => a - b);
  return depths.map((depth) => targets.filter(({ proxyJump }) => proxyJump.length === depth));
}

async function inspect(keys: HostKeys, target: SshTarget, signal: AbortSignal): Promise<Finding> {
  try {
    return { target, shown: await keys.inspect(target, signal) };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { target, failure: error.problems };
  }
}

async function mayRecord(services: Services, unknown: readonly Finding[], yes: boolean): Promise<boolean> {
  if (yes) return true;
  services.output.stderr(joinLines(keyTable(unknown)));
  const what = unknown.length === 1 ? 'this key' : `these ${unknown.length} keys`;
  const answer = await services.confirm(`Are ${what} the hosts' own? Compare the fingerprints before you record them.`);
  if (answer === null)
    throw usageError(
      'fleet trust: standard input is not a terminal',
      'Compare the fingerprints with --dry-run, then record the keys with --yes',
    );
  return answer;
}

async function recordAll(keys: HostKeys, findings: readonly Finding[]): Promise<readonly Finding[]> {
  const done: Finding[] = [];
  for (const finding of findings) {
    if (!isUnknown(finding)) done.push(finding);
    else done.push(await record(keys, finding));
  }
  return done;
}

async function record(keys: HostKeys, finding: Finding): Promise<Finding> {
  const { target, shown } = finding;
  const failed = (why: string): Finding => ({
    target,
    failure: [
      {
        code: 'HOST_KEY_NOT_ADDED',
        host: target.name,
        message: `its key could not be recorded: ${why}`,
        hint: 'Name another file with --ssh-known-hosts',
      },
    ],
  });
  try {
    const file = await keys.save(target, (shown as ShownHostKey).key);
    return file === null ? failed('no known_hosts file is configured') : { ...finding, recorded: file };
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  }
}

function problemsOf({ target, shown, failure = [] }: Finding): readonly Problem[] {
  if (shown === undefined) return failure;
  const { key, verdict } = shown;
  const common = { host: target.name, knownAs: knownHostsNames(target).name, shown: describe(key) };
  if (verdict.kind === 'mismatch') return hostKeyMismatch({ ...common, known: describe(verdict.entry), entry: verdict.entry }).problems;
  return verdict.kind === 'revoked' ? hostKeyRevoked({ ...common, entry: verdict.entry }).problems : failure;
}

function describe(key: HostKey): string {
  return `${hostKeyTypeName(key.type)} key ${hostKeyFingerprint(key)}`;
}

const STATES = { known: 'known', unknown: 'not known', mismatch: 'CHANGED', revoked: 'REVOKED' } as const;

function keyTable(findings: readonly Finding[]): readonly string[] {
  const rows = findings.flatMap(({ target, shown, recorded }) => {
    if (shown === undefined) return [];
    const { key, verdict } = shown;
    const state = recorded === undefined ? STATES[verdict.kind] : `recorded in ${recorded}`;
    return [[target.name, knownHostsNames(target).name, hostKeyTypeName(key.type), hostKeyFingerprint(key), state]];
  });
  return rows.length === 0 ? [] : renderTable([['HOST', 'KNOWN AS', 'TYPE', 'FINGERPRINT', 'STATE'], ...rows]);
}

function show(services: Services, findings: readonly Finding[], format: DocumentFormat): void {
  if (format !== 'text') {
    const hosts = findings.map(
      ({ target, shown, recorded, failure }): JsonObject => ({
        host: target.name,
        knownAs: knownHostsNames(target).name,
        ...(shown === undefined
          ? { state: 'failed', code: failure?.[0]?.code ?? 'UNKNOWN' }
          : {
              type: shown.key.type,
              key: shown.key.blob,
              fingerprint: hostKeyFingerprint(shown.key),
              state: recorded === undefined ? shown.verdict.kind : 'recorded',
            }),
        ...(recorded === undefined ? {} : { file: recorded }),
      }),
    );
    services.output.stdout(renderDocument({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'HostKeys', hosts }, format));
    return;
  }
  const lines = keyTable(findings);
  if (lines.length > 0) services.output.stdout(joinLines(lines));
}
