import type { ExitCode } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import { type HostKeyFinding, hostKeyState, type TrustRequest, trustHostKeys } from '../fleet/use-cases/trust-host-keys.ts';
import { hostKeyFingerprint, hostKeyTypeName, knownHostsNames } from '../ssh/known-hosts.ts';
import { nodeColumn } from './output/node-column.ts';
import type { Services } from './output/services.ts';
import { type DocumentFormat, renderDocument } from './output/show-document.ts';

export interface FleetTrustRequest extends TrustRequest {
  readonly format: DocumentFormat;
}

/** `fleet trust`: exit code 6 when a key is unknown. */
export async function runFleetTrust(services: Services, request: FleetTrustRequest): Promise<ExitCode> {
  const { findings, hasUnknown, failure } = await trustHostKeys(services, request, (unknown) => confirmKeys(services, unknown));
  show(services, findings, request.format);
  if (failure !== null) throw failure;
  return hasUnknown ? 6 : 0;
}

async function confirmKeys({ output, confirm }: Services, unknown: readonly HostKeyFinding[]): Promise<boolean | null> {
  output.stderr(joinLines(keyTable(unknown)));
  const what = unknown.length === 1 ? 'this key' : `these ${unknown.length} keys`;
  return confirm(`Compare the fingerprints with those on the hosts. Record ${what}? [y/N] `);
}

const STATES = { known: 'known', unknown: 'unknown', mismatch: 'CHANGED', revoked: 'REVOKED' } as const;

function keyTable(findings: readonly HostKeyFinding[]): readonly string[] {
  const node = nodeColumn(findings.map(({ target }) => ({ host: target.name, node: target.node })));
  const rows = findings.flatMap(({ target, shown, recorded }) => {
    if (shown === undefined) return [];
    const { key, verdict } = shown;
    const state = recorded === undefined ? STATES[verdict.kind] : `recorded in ${recorded}`;
    return [
      [target.name, ...node.cells(target.name), knownHostsNames(target).name, hostKeyTypeName(key.type), hostKeyFingerprint(key), state],
    ];
  });
  return rows.length === 0 ? [] : renderTable([['HOST', ...node.header, 'KNOWN AS', 'TYPE', 'FINGERPRINT', 'STATE'], ...rows]);
}

function show(services: Services, findings: readonly HostKeyFinding[], format: DocumentFormat): void {
  if (format !== 'text') {
    const hosts = findings.map((finding): JsonObject => {
      const { target, shown, recorded, failure } = finding;
      const state = hostKeyState(finding);
      return {
        host: target.name,
        knownAs: knownHostsNames(target).name,
        ...(shown === undefined
          ? { state, code: failure?.[0]?.code ?? 'UNKNOWN' }
          : { type: shown.key.type, key: shown.key.blob, fingerprint: hostKeyFingerprint(shown.key), state }),
        ...(recorded === undefined ? {} : { file: recorded }),
      };
    });
    services.output.stdout(renderDocument({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'HostKeys', hosts }, format));
    return;
  }
  const lines = keyTable(findings);
  if (lines.length > 0) services.output.stdout(joinLines(lines));
}
