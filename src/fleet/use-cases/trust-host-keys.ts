import { dirname } from 'node:path';
import { isAppError, type Problem } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { systemErrorText } from '../../base/system-error.ts';
import { hostKeyMismatch, hostKeyRevoked } from '../../host/host-problems.ts';
import type { HostKeys, ShownHostKey } from '../../ssh/host-keys.ts';
import { type HostKey, hostKeyFingerprint, hostKeyTypeName, knownHostsNames } from '../../ssh/known-hosts.ts';
import type { SshTarget } from '../../ssh/target.ts';
import type { ResolvedFleet } from '../model.ts';
import { type Selection, selectHosts } from '../select.ts';
import { fleetSshTarget } from '../ssh-target.ts';

/** The finding for one host or jump host. */
export interface HostKeyFinding {
  readonly target: SshTarget;
  readonly shown?: ShownHostKey | undefined;
  readonly failure?: readonly Problem[] | undefined;
  /** The file to which the key was written in this run. */
  readonly recorded?: string | undefined;
}

/** Options for reading and recording host keys. */
export interface TrustInput {
  readonly fleet: ResolvedFleet;
  readonly keys: HostKeys;
  readonly selection: Selection;
  /** Number of hosts processed at once. */
  readonly parallel: number;
  readonly signal: AbortSignal;
  /** Decides whether to record unknown keys, for the hosts of one round. */
  mayRecord(unknown: readonly HostKeyFinding[]): Promise<boolean>;
}

/**
 * Reads the keys of the hosts of a fleet and of their jump hosts. Jump hosts come first, because a connection
 * through them requires their key to be known.
 * @throws AppError errors of reading the fleet's SSH targets; the reason of `signal`
 */
export async function trustHostKeys({
  fleet,
  keys,
  selection,
  parallel,
  signal,
  mayRecord,
}: TrustInput): Promise<readonly HostKeyFinding[]> {
  const findings: HostKeyFinding[] = [];
  for (const round of roundsOf(targetsOf(fleet, keys, selection))) {
    const found = await inParallel(round, parallel, (target) => inspect(keys, target, signal));
    signal.throwIfAborted();
    const unknown = found.filter(isUnknownKey);
    findings.push(...(unknown.length > 0 && (await mayRecord(unknown)) ? await recordAll(keys, found) : found));
  }
  return findings;
}

/** Whether the key of the host is not known. */
export function isUnknownKey({ shown, recorded }: HostKeyFinding): boolean {
  return shown?.verdict.kind === 'unknown' && recorded === undefined;
}

/** Whether the key of the host is known, or was recorded. */
export function isKnownKey({ shown, recorded }: HostKeyFinding): boolean {
  return shown?.verdict.kind === 'known' || recorded !== undefined;
}

/** Hosts and their jump hosts, each once, the nearest to the local host first. */
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

async function inspect(keys: HostKeys, target: SshTarget, signal: AbortSignal): Promise<HostKeyFinding> {
  try {
    return { target, shown: await keys.inspect(target, signal) };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { target, failure: error.problems };
  }
}

async function recordAll(keys: HostKeys, findings: readonly HostKeyFinding[]): Promise<readonly HostKeyFinding[]> {
  const done: HostKeyFinding[] = [];
  for (const finding of findings) {
    if (!isUnknownKey(finding)) done.push(finding);
    else done.push(await record(keys, finding));
  }
  return done;
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
    const file = await keys.save(target, (shown as ShownHostKey).key);
    return file === null ? failed('no known_hosts file is configured') : { ...finding, recorded: file };
  } catch (error) {
    return failed(systemErrorText(error));
  }
}

/** The problem of a host key, or of the connection. */
export function hostKeyProblems({ target, shown, failure = [] }: HostKeyFinding): readonly Problem[] {
  if (shown === undefined) return failure;
  const { key, verdict } = shown;
  const common = { host: target.name, knownAs: knownHostsNames(target).name, shown: describe(key) };
  if (verdict.kind === 'mismatch') return hostKeyMismatch({ ...common, known: describe(verdict.entry), entry: verdict.entry }).problems;
  return verdict.kind === 'revoked' ? hostKeyRevoked({ ...common, entry: verdict.entry }).problems : failure;
}

function describe(key: HostKey): string {
  return `${hostKeyTypeName(key.type)} key ${hostKeyFingerprint(key)}`;
}
