import { dirname } from 'node:path';
import type { RunTime } from '../../base/clock.ts';
import { AppError, isAppError, type Problem, usageError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { systemErrorText } from '../../base/system-error.ts';
import { hostKeyMismatch, hostKeyRevoked } from '../../host/host-problems.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { HostKeys, PresentedHostKey } from '../../ssh/host-keys.ts';
import { describeHostKey, type HostKeyVerdict, knownHostsNames } from '../../ssh/known-hosts.ts';
import type { SshTarget } from '../../ssh/target.ts';
import type { ResolvedFleet } from '../file/model.ts';
import { type Selection, selectHosts } from '../file/select.ts';
import type { FleetFilePorts, HostKeySource } from '../ports.ts';
import { fleetSshTarget } from '../ssh-target.ts';
import type { FleetHostsRequest } from './fleet-request.ts';
import { readSshOptions, withSshConfig } from './host-access.ts';
import { directoryOf, readFleet } from './load-fleet.ts';

export interface TrustRequest extends FleetHostsRequest {
  readonly parallel: number;
  readonly yes: boolean;
  readonly run: Pick<RunSettings, 'dryRun'>;
}

/** A host or jump host, with the Node that the fleet file declares. */
type KeyTarget = SshTarget & { readonly node?: string | undefined };

export interface HostKeyFinding {
  readonly target: KeyTarget;
  readonly shown?: PresentedHostKey | undefined;
  readonly failure?: readonly Problem[] | undefined;
  /** The file to which the key was written in this run. */
  readonly recorded?: string | undefined;
}

/**
 * Reads the keys of the selected hosts of a fleet and of their jump hosts, and records the unknown ones that the request
 * or the operator trusts. A changed or revoked key is never recorded. Jump hosts come first, because a connection through
 * them requires their key to be known.
 * @param confirm asks the operator whether to record keys; null: the operator cannot be asked
 * @returns `hasUnknown`: the key of a host is still unknown; `failure`: the problems of refused keys and of unreachable hosts
 * @throws AppError with exit code 2 for an invalid fleet file or selection, or if the operator cannot be asked; errors of
 * the SSH configuration; the reason of `services.signal`
 */
export async function trustHostKeys(
  services: FleetFilePorts & HostKeySource & Pick<RunTime, 'signal'>,
  request: TrustRequest,
  confirm: (unknown: readonly HostKeyFinding[]) => Promise<boolean | null>,
): Promise<{ readonly findings: readonly HostKeyFinding[]; readonly hasUnknown: boolean; readonly failure: AppError | null }> {
  const fleet = await readFleet(services, request);
  const ssh = await readSshOptions(services, request.connection);
  const directory = directoryOf(services, fleet.file);
  const keys = await services.openHostKeys(withSshConfig(services, ssh, { configFile: fleet.hosts[0]?.ssh.configFile, directory }));
  const { signal } = services;
  const mayRecord = async (unknown: readonly HostKeyFinding[]): Promise<boolean> => {
    if (request.run.dryRun || request.yes) return !request.run.dryRun;
    const answer = await confirm(unknown);
    if (answer !== null) return answer;
    const hint = 'Compare the fingerprints with --dry-run, then record the keys with --yes';
    throw usageError('fleet trust: standard input is not a terminal', hint);
  };
  const findings: HostKeyFinding[] = [];
  for (const round of roundsOf(targetsOf(fleet, keys, request.selection))) {
    const found = await inParallel(round, request.parallel, (target) => inspect(keys, target, signal));
    signal.throwIfAborted();
    const unknown = found.filter(isUnknownKey);
    const isRecorded = unknown.length > 0 && (await mayRecord(unknown));
    for (const one of found) findings.push(isRecorded && isUnknownKey(one) ? await record(keys, one) : one);
  }
  const problems = findings.flatMap(hostKeyProblems);
  // Exit code 4 if the key of another host is known.
  const exitCode = findings.some((one) => ['known', 'recorded'].includes(hostKeyState(one))) ? 4 : 1;
  return {
    findings,
    hasUnknown: findings.some(isUnknownKey),
    failure: problems.length === 0 ? null : new AppError(problems, { exitCode }),
  };
}

/** `failed`: the key was not read, or could not be recorded. */
export function hostKeyState({ shown, recorded }: HostKeyFinding): HostKeyVerdict['kind'] | 'recorded' | 'failed' {
  if (shown === undefined) return 'failed';
  return recorded === undefined ? shown.verdict.kind : 'recorded';
}

function isUnknownKey(finding: HostKeyFinding): boolean {
  return hostKeyState(finding) === 'unknown';
}

/** Hosts and their jump hosts, each once, the nearest to the local host first. */
function targetsOf(fleet: ResolvedFleet, { config, overrides }: HostKeys, selection: Selection): readonly KeyTarget[] {
  const hosts = selectHosts(fleet.hosts, selection);
  const targets = new Map<string, KeyTarget>();
  const directory = fleet.file === '-' ? '' : dirname(fleet.file);
  for (const host of hosts) {
    const target: KeyTarget = { ...fleetSshTarget(host, config, { directory, overrides }), node: host.nodeRegistration.name };
    for (const [i, hop] of [...target.proxyJump, target].entries()) {
      const route = target.proxyJump.slice(0, i);
      const key = [...route, hop].map((each) => knownHostsNames(each).name).join(' ');
      if (!targets.has(key)) targets.set(key, { ...hop, proxyJump: route });
    }
  }
  return [...targets.values()];
}

function roundsOf(targets: readonly KeyTarget[]): readonly (readonly KeyTarget[])[] {
  const depths = [...new Set(targets.map(({ proxyJump }) => proxyJump.length))].sort((a, b) => a - b);
  return depths.map((depth) => targets.filter(({ proxyJump }) => proxyJump.length === depth));
}

async function inspect(keys: HostKeys, target: KeyTarget, signal: AbortSignal): Promise<HostKeyFinding> {
  try {
    return { target, shown: await keys.inspect(target, signal) };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { target, failure: error.problems };
  }
}

async function record(keys: HostKeys, finding: HostKeyFinding): Promise<HostKeyFinding> {
  const { target, shown } = finding;
  const failed = (why: string): HostKeyFinding => ({
    target,
    failure: [
      {
        code: 'HOST_KEY_NOT_ADDED',
        host: target.name,
        message: `cannot record the host key: ${why}`,
        hint: 'Pass another file with --ssh-known-hosts',
      },
    ],
  });
  try {
    const file = await keys.save(target, (shown as PresentedHostKey).key);
    return file === null ? failed('no known_hosts file is configured') : { ...finding, recorded: file };
  } catch (error) {
    return failed(systemErrorText(error));
  }
}

function hostKeyProblems({ target, shown, failure = [] }: HostKeyFinding): readonly Problem[] {
  if (shown === undefined) return failure;
  const { key, verdict } = shown;
  const common = { host: target.name, knownAs: knownHostsNames(target).name, shown: describeHostKey(key) };
  if (verdict.kind === 'mismatch')
    return hostKeyMismatch({ ...common, known: describeHostKey(verdict.entry), entry: verdict.entry }).problems;
  return verdict.kind === 'revoked' ? hostKeyRevoked({ ...common, entry: verdict.entry }).problems : failure;
}
