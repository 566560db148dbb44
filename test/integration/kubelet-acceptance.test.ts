import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Host } from '../../src/host/access/host.ts';
import { observe } from '../../src/host/access/observe.ts';
import { hostOverTransport } from '../../src/host/host-over-transport.ts';
import { kubeletAcceptance, queriedKubelet } from '../../src/kubelet/facts/kubelet-acceptance.ts';
import { programsOf } from '../support/control-plane-images.ts';
import { requirement } from '../support/requirement.ts';
import { shellTransport } from '../support/shell-transport.ts';
import { SHELLS } from '../support/shells.ts';

const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const nonce = (): string => randomBytes(8).toString('hex');

/** Records its arguments and files, and fails like a kubelet without a lock file. */
const STAND_IN = `#!/bin/sh
here=\${0%/*}
for word; do case $word in --config=*) config=\${word#--config=};; esac; done
cat "$config" >"$here/config"
printf %s "\${config%/*}" >"$here/directory"
ls -ld "\${config%/*}" | cut -c1-10 >"$here/mode"
printf '%s\\n' "$@" >"$here/words"
cat >"$here/stdin"
echo 'E1121 19:39:45.449559   30278 run.go:72] "command failed" err="failed to run Kubelet: cannot exit on lock file contention: no lock file specified"' >&2
exit 1
`;

describe.each(SHELLS)('validation by a kubelet in $name', (shell) => {
  describe.skipIf(requirement(`asking a kubelet in ${shell.name}`, shell.missing))('here', () => {
    let top = '';
    let temporary = '';
    let host: Host;

    beforeAll(() => {
      top = mkdtempSync(join(tmpdir(), 'ask-kubelet-'));
      temporary = join(top, 'tmp');
      mkdirSync(temporary);
      const options = shell.options(top);
      host = hostOverTransport(shellTransport({ ...options, env: { ...options.env, TMPDIR: temporary } }), { nonce });
    });
    afterAll(() => rmSync(top, { recursive: true, force: true }));

    const program = (name: string, text: string): string => {
      const path = join(top, name, 'kubelet');
      mkdirSync(join(top, name));
      writeFileSync(path, text);
      chmodSync(path, 0o755);
      return path;
    };

    it('passes the configuration in a temporary directory that is removed afterwards', async () => {
      const kubeletPath = program('stand-in', STAND_IN);
      const config = `${HEADER}staticPodURLHeader: {Authorization: [it's secret]}\r\nmaxPods: 1`;
      const flags = [
        { name: 'node-labels', value: 'a=b c' },
        { name: 'v', value: '4' },
      ];
      expect(await observe(host, kubeletAcceptance(kubeletPath, config, flags))).toEqual({ verdict: 'accepted' });
      const written = (name: string): string => readFileSync(join(top, 'stand-in', name), 'utf8');
      expect([written('config'), written('stdin'), written('mode')]).toEqual([config, '', 'drwx------\n']);
      const directory = written('directory');
      expect(directory.startsWith(`${temporary}/`)).toBe(true);
      expect(written('words').split('\n').filter(Boolean)).toEqual([
        '--node-labels=a=b c',
        '--v=4',
        `--config=${directory}/config.yaml`,
        `--cert-dir=${directory}/pki`,
        `--root-dir=${directory}/root`,
        '--client-ca-file=',
        '--lock-file=',
        '--exit-on-lock-contention=true',
      ]);
      expect(readdirSync(temporary)).toEqual([]);
    });

    it.each<[string, string, unknown]>([
      ['that prints nothing', '#!/bin/sh\nexit 1\n', { verdict: 'unknown', why: 'no output within 20 s' }],
      ['that is not a kubelet', '#!/bin/sh\necho usage: kubelet\n', { verdict: 'unknown', why: 'usage: kubelet' }],
    ])('returns no verdict for a program %s', async (name, text, expected) => {
      const kubeletPath = program(name, text);
      expect(await observe(host, kubeletAcceptance(kubeletPath, HEADER, []))).toEqual(expected);
    });

    it('reports a missing kubelet', async () => {
      const acceptance = await observe(host, kubeletAcceptance(`${top}/no-kubelet`, HEADER, []));
      expect(acceptance).toEqual({ verdict: 'unknown', why: expect.stringMatching(/no-kubelet/) });
      expect(await observe(host, queriedKubelet(`${top}/no-kubelet`))).toMatchObject({ version: null });
    });
  });
});

const assets = process.env.KUBEBUILDER_ASSETS ?? '';
const kubelets = [
  { which: 'a real kubelet', kubelet: join(assets, 'kubelet'), variable: 'KUBEBUILDER_ASSETS' },
  { which: 'a real kubelet 1.35', kubelet: join(programsOf('v1.35.6') ?? '', 'kubelet'), variable: 'KUBERNETES_VERSIONS_DIR' },
];

describe.each(kubelets)('validation by $which', ({ which, kubelet, variable }) => {
  const missing = isAbsolute(kubelet) && existsSync(kubelet) ? null : `${variable} names no folder with it`;
  describe.skipIf(requirement(`asking ${which}`, missing))('here', () => {
    const host = hostOverTransport(shellTransport({ shell: ['/bin/sh'] }), { nonce });
    const query = (config: string, flags: readonly (readonly [string, string])[] = []) =>
      observe(
        host,
        kubeletAcceptance(
          kubelet,
          `${HEADER}failCgroupV1: false\n${config}`,
          flags.map(([name, value]) => ({ name, value })),
        ),
      );

    it('detects its version', async () => {
      expect(await observe(host, queriedKubelet(kubelet))).toMatchObject({ version: expect.stringMatching(/^v1\.\d+\./) });
    });

    it('accepts a valid configuration, and leaves no process', async () => {
      expect(await query('maxPods: 50\n', [['node-ip', '10.0.0.1']])).toEqual({ verdict: 'accepted' });
      expect(execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })).not.toContain(`${kubelet} --`);
    });

    it('accepts a CA of clients that does not exist yet', async () => {
      expect(await query('authentication: {x509: {clientCAFile: /nowhere/ca.crt}}\n')).toEqual({ verdict: 'accepted' });
    });

    it.each<[string, string, readonly (readonly [string, string])[], RegExp]>([
      ['a value out of range', 'healthzPort: 70000\nmaxPods: -1\n', [], /healthzPort .* 70000 must be between 1 and 65535.*; maxPods/],
      ['a wrong type', 'maxPods: x\n', [], /cannot read its configuration: .*maxPods/],
      ['a locked gate', 'featureGates: {AnyVolumeDataSource: false}\n', [], /AnyVolumeDataSource is locked to true/],
      ['an unknown cipher suite', 'tlsCipherSuites: [x]\n', [], /x is not a cipher suite/],
      ['an unknown flag', '', [['nope', '1']], /does not know the flag --nope/],
      ['a flag that conflicts with the configuration', '', [['max-pods', '-1']], /maxPods .* must not be a negative number/],
    ])('rejects %s', async (_, config, flags, cause) => {
      expect(await query(config, flags)).toMatchObject({ verdict: 'refused', cause: expect.stringMatching(cause), isHost: false });
    });
  });
});
