import { AppError, type ExitCode, usageError } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import type { FleetHostsRequest } from '../fleet/use-cases/fleet-request.ts';
import { readSshOptions } from '../fleet/use-cases/host-access.ts';
import { readFleet } from '../fleet/use-cases/load-fleet.ts';
import { type HostKeyFinding, hostKeyProblems, isKnownKey, isUnknownKey, trustHostKeys } from '../fleet/use-cases/trust-host-keys.ts';
import { hostKeyFingerprint, hostKeyTypeName, knownHostsNames } from '../ssh/known-hosts.ts';
import type { Services } from './services.ts';
import { type DocumentFormat, renderDocument } from './show-document.ts';

export interface FleetTrustRequest extends FleetHostsRequest {
  /** Number of hosts processed at once. */
  readonly parallel: number;
  /** Record the keys without a confirmation. */
  readonly yes: boolean;
  /** Only show the keys. */
  readonly dryRun: boolean;
  readonly format: DocumentFormat;
}

/** `fleet trust`: exit code 6 when a key is unknown. */
export async function runFleetTrust(services: Services, request: FleetTrustRequest): Promise<ExitCode> {
  const { selection, parallel, dryRun, yes, format } = request;
  const fleet = await readFleet(services, request);
  const keys = await services.openHostKeys(await readSshOptions(services, request.connection));
  const findings = await trustHostKeys({
    fleet,
    keys,
    selection,
    parallel,
    signal: services.signal,
    mayRecord: async (unknown) => !dryRun && (await mayRecord(services, unknown, yes)),
  });
  show(services, findings, format);
  const problems = findings.flatMap(hostKeyProblems);
  if (problems.length > 0) throw new AppError(problems, { exitCode: findings.some(isKnownKey) ? 4 : 1 });
  return findings.some(isUnknownKey) ? 6 : 0;
}

async function mayRecord(services: Services, unknown: readonly HostKeyFinding[], yes: boolean): Promise<boolean> {
  if (yes) return true;
  services.output.stderr(joinLines(keyTable(unknown)));
  const what = unknown.length === 1 ? 'this key' : `these ${unknown.length} keys`;
  const answer = await services.confirm(`Compare the fingerprints with those on the hosts. Record ${what}? [y/N] `);
  if (answer === null)
    throw usageError(
      'fleet trust: standard input is not a terminal',
      'Compare the fingerprints with --dry-run, then record the keys with --yes',
    );
  return answer;
}

const STATES = { known: 'known', unknown: 'unknown', mismatch: 'CHANGED', revoked: 'REVOKED' } as const;

function keyTable(findings: readonly HostKeyFinding[]): readonly string[] {
  const rows = findings.flatMap(({ target, shown, recorded }) => {
    if (shown === undefined) return [];
    const { key, verdict } = shown;
    const state = recorded === undefined ? STATES[verdict.kind] : `recorded in ${recorded}`;
    return [[target.name, knownHostsNames(target).name, hostKeyTypeName(key.type), hostKeyFingerprint(key), state]];
  });
  return rows.length === 0 ? [] : renderTable([['HOST', 'KNOWN AS', 'TYPE', 'FINGERPRINT', 'STATE'], ...rows]);
}

function show(services: Services, findings: readonly HostKeyFinding[], format: DocumentFormat): void {
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
