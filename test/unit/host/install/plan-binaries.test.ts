import { describe, expect, it } from 'vitest';
import type { UnitState } from '../../../../src/host/facts/unit.ts';
import { extractArchive } from '../../../../src/host/install/operations.ts';
import { type BinaryFacts, filesToInstall, planBinaries } from '../../../../src/host/install/plan-binaries.ts';
import type { BinaryInstall } from '../../../../src/host/operation/install-model.ts';
import type { LargeFile } from '../../../../src/host/operation/large-file.ts';
import { describeDone } from '../../../../src/host/operation-kinds.ts';
import type { HostChange } from '../../../../src/host/plan/change.ts';

const [A, B, C] = ['a'.repeat(64), 'b'.repeat(64), 'c'.repeat(64)] as const;
const INSTALL: BinaryInstall = {
  kind: 'binaries',
  files: [
    { name: 'kubelet', source: 'bin/kubelet', sha256: A, mode: 0o755, path: '/usr/bin/kubelet', isArchive: false },
    { name: 'crictl', source: 'https://example.com/crictl', sha256: B, mode: 0o755, path: '/usr/local/bin/crictl', isArchive: false },
    {
      name: 'containerd.tar.gz',
      source: 'https://example.com/containerd.tar.gz',
      sha256: C,
      mode: 0o600,
      path: '/usr/local',
      isArchive: true,
    },
  ],
  units: ['containerd'],
};
const unit = (activeState: string, unitFileState = 'enabled'): UnitState => ({ activeState, unitFileState }) as UnitState;
const large = (sha256: string): LargeFile => ({ sha256, size: 3, head: '', pieces: () => [] });
const contents = new Map([['kubelet', large(A)]]);
const shown = (changes: readonly unknown[]): readonly string[] => (changes as readonly HostChange[]).map(describeDone);

function facts(over: Partial<BinaryFacts> = {}): BinaryFacts {
  return { sums: new Map(), modes: new Map(), unpacked: new Map([['containerd.tar.gz', '']]), units: new Map(), ...over };
}
const EXISTING = facts({
  sums: new Map([
    ['/usr/bin/kubelet', A],
    ['/usr/local/bin/crictl', B],
  ]),
  modes: new Map([
    ['/usr/bin/kubelet', 0o755],
    ['/usr/local/bin/crictl', 0o755],
  ]),
  unpacked: new Map([['containerd.tar.gz', C]]),
  units: new Map([['containerd', unit('active')]]),
});

describe('planBinaries', () => {
  it('sends local files, lets the host download the rest, and starts the units', () => {
    expect(shown(planBinaries(INSTALL, facts(), { contents, host: 'n1' }).changes)).toEqual([
      'put /usr/bin/kubelet (0.0 MB)',
      'downloaded /usr/local/bin/crictl',
      'downloaded /var/lib/kubeletadm/archives/containerd.tar.gz',
      'unpacked /var/lib/kubeletadm/archives/containerd.tar.gz to /usr/local',
      'removed /var/lib/kubeletadm/archives/containerd.tar.gz',
      'created /var/lib/kubeletadm/archives/containerd.tar.gz.sha256',
      'ran systemctl daemon-reload',
      'enabled containerd',
      'started containerd',
    ]);
  });

  it('has no changes when everything is installed', () => {
    expect(filesToInstall(INSTALL, EXISTING)).toEqual([]);
    expect(planBinaries(INSTALL, EXISTING, { contents: new Map(), host: 'n1' })).toEqual({
      changes: [],
      noop: 'kubelet, crictl, containerd.tar.gz: unchanged',
    });
  });

  it('replaces files that differ, and restarts a running kubelet', () => {
    const found = {
      ...EXISTING,
      sums: new Map([...EXISTING.sums, ['/usr/bin/kubelet', C]]),
      units: new Map([...EXISTING.units, ['kubelet', unit('active')]]),
    };
    expect(planBinaries(INSTALL, found, { contents, host: 'n1' }).changes).toEqual([
      {
        kind: 'put-file',
        path: '/usr/bin/kubelet',
        mode: 0o755,
        owner: 'root:root',
        content: contents.get('kubelet'),
        keep: true,
        reason: 'its SHA-256 differs',
      },
      { kind: 'restart-unit', unit: 'kubelet', reason: 'the kubelet binary is replaced', impact: 'drain' },
    ]);
    const loose = { ...EXISTING, modes: new Map([...EXISTING.modes, ['/usr/local/bin/crictl', 0o777]]) };
    expect(planBinaries(INSTALL, loose, { contents, host: 'n1' }).changes).toMatchObject([
      { kind: 'download-file', reason: 'its mode differs' },
    ]);
  });

  it('rejects a local file with another hash than declared', () => {
    expect(() => planBinaries(INSTALL, facts(), { contents: new Map([['kubelet', large(B)]]), host: 'n1' })).toThrow(
      `n1: bin/kubelet has the SHA-256 ${B}, but ${A} is declared. Correct sha256, or provide the right file. [INSTALL_CHECKSUM]`,
    );
  });

  it.each([
    ['/x/a.tar.gz', '-xzf'],
    ['/x/a.tgz', '-xzf'],
    ['/x/a.tar.xz', '-xJf'],
    ['/x/a.tar', '-xf'],
  ])('unpacks %s with tar %s', (path, flags) => {
    expect(extractArchive(path, '/usr/local').argv.slice(4)).toEqual([path, '/usr/local', flags]);
  });
});
