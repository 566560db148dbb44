import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runCommand } from '../support/run-cli.ts';

const directory = mkdtempSync(join(tmpdir(), 'ka-bad-'));
const noCertificate = join(directory, 'ca.crt');
writeFileSync(noCertificate, 'root:x:0:0\n');
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const JOIN = ['join', '127.0.0.1:1', '--token', 'abcdef.0123456789abcdef', '--ca-cert', noCertificate];
const RESET = ['reset', '--force', '--host', 'nowhere.invalid'];

describe('options with unusable values', () => {
  it.each<[string, readonly string[], string]>([
    [
      'a host given twice',
      [...RESET, '--host', 'n2', '--host', 'nowhere.invalid'],
      '--host nowhere.invalid is given twice. Pass each host once. [USAGE]',
    ],
    [
      'an SSH key file that does not exist',
      [...RESET, '-i', '/no/key'],
      '--ssh-identity /no/key: the file does not exist. Check the path. [USAGE]',
    ],
    [
      'a password missing on standard input',
      [...RESET, '--sudo-password-stdin'],
      'no password on standard input. Pipe one password per line, the SSH password first. [USAGE]',
    ],
    [
      'a password prompt without a terminal',
      [...RESET, '-K'],
      '--ask-become-pass: cannot ask for the password: standard input or standard error is not a terminal. Use --sudo-password-stdin or the environment variable KUBELETADM_SUDO_PASSWORD. [USAGE]',
    ],
    [
      'a password prompt and a password on standard input',
      [...RESET, '-k', '--sudo-password-stdin'],
      '--ask-pass and --sudo-password-stdin cannot be combined. Omit one of the two. [USAGE]',
    ],
    [
      'a CA file without certificates',
      JOIN,
      `discovery (${noCertificate}): the file contains no certificate, or a damaged one. Use /etc/kubernetes/pki/ca.crt of a control plane. [DISCOVERY_NO_CA]`,
    ],
  ])('%s', async (_, argv, line) => {
    expect(await runCommand(argv)).toEqual({ code: 2, stdout: '', stderr: `${line}\n` });
  });

  it.each([
    ['join.yaml', 'nodeRegistration: {name: n1}', 'node name (nodeRegistration.name, --node-name)'],
    ['ip.yaml', 'nodeRegistration: {kubeletExtraArgs: [{name: node-ip, value: 10.0.0.1}]}', 'node IP (node-ip, --node-ip)'],
  ])('a value for one node is rejected for several hosts, in %s', async (name, line, what) => {
    const file = join(directory, name);
    writeFileSync(file, `apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n${line}\n`);
    const { code, stderr } = await runCommand([...JOIN, '--config', file, '--host', 'a.invalid', '--host', 'b.invalid']);
    expect([code, stderr]).toEqual([
      2,
      `several hosts cannot have the same ${what}. Join the hosts one by one, or omit the setting. [USAGE]\n`,
    ]);
  });

  it('a patch that cannot be applied is reported with its file', async () => {
    const patches = join(directory, 'patches');
    mkdirSync(patches);
    writeFileSync(join(patches, 'kubeletconfiguration0.yaml'), 'maxPods: 60\n');
    const bad = join(patches, 'kubeletconfiguration1.yaml');
    writeFileSync(bad, '$retainKeys: [x]\nclusterDNS: [9.9.9.9]\n');
    const { code, stderr } = await runCommand(['init', '--rootfs', directory, '--dry-run', '--node-name', 'n1', '--patches', patches]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`patch ${bad}: clusterDNS is set but not listed in $retainKeys`)]);
  });

  it('a phase that does not exist', async () => {
    const { code, stderr } = await runCommand(['reset', 'phase', 'nope', '--force', '--rootfs', directory]);
    expect([code, stderr]).toEqual([2, 'reset has no phase nope. To list the phases, run kubeletadm reset --help --all. [USAGE]\n']);
  });

  it('two options that read standard input', async () => {
    const stdin = 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ResetConfiguration\n';
    const { code, stderr } = await runCommand([...RESET, '--config', '-', '--sudo-password-stdin'], { stdin });
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^two options read standard input\. .*\[USAGE\]\n$/)]);
  });
});
