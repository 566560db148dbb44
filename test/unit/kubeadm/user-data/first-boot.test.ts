import { describe, expect, it } from 'vitest';
import { isAppError } from '../../../../src/base/errors.ts';
import { firstBoot } from '../../../../src/kubeadm/user-data/first-boot.ts';
import { parseJoinFile } from '../../../../src/kubeadm/user-data/join-unit.ts';
import type { HostEntry } from '../../../../src/kubeadm/user-data/model.ts';
import { hostProxy } from '../../../../src/kubeadm/user-data/proxy.ts';

const PROGRAM = '/usr/local/bin/kubeletadm';
const JOIN_FILE = { kind: 'path', path: '/run/join.yaml' } as const;
const NO_PROXY = hostProxy({});
const TOKEN = 'abcdef.0123456789abcdef';

function file(path: string, text: string): HostEntry {
  return { kind: 'file', path, content: Buffer.from(text), mode: 0o644, uid: 0, gid: 0 };
}

function directory(path: string, mode = 0o755): HostEntry {
  return { kind: 'directory', path, mode, uid: 0, gid: 0 };
}

/** The problems of the files, as `CODE message`. */
function problemsOf(...entries: readonly HostEntry[]): readonly string[] {
  try {
    firstBoot({ entries, joinFile: JOIN_FILE, program: PROGRAM, allowedSecrets: [], proxy: NO_PROXY });
    return [];
  } catch (error) {
    if (!isAppError(error)) throw error;
    expect(error.exitCode).toBe(2);
    return error.problems.map(({ code, message }) => `${code} ${message}`);
  }
}

describe('the content of user data', () => {
  it('has no file with a secret, and the error does not show the secret', () => {
    const key = ['-----BEGIN', 'EC PRIVATE KEY-----\nMHcCAQEEIIrYSSNQFaA2Hwf1\n'].join(' ');
    const secrets: readonly (readonly [path: string, text: string, line: number | null])[] = [
      ['/etc/kubernetes/pki/ca.key', key, 1],
      ['/etc/a.yaml', `kind: JoinConfiguration\ndiscovery:\n  bootstrapToken:\n    token: ${TOKEN}\n`, 4],
      ['/etc/b.sh', `#!/bin/sh\nkubeadm join --token ${TOKEN}\n`, 2],
      ['/etc/c.conf', 'users:\n- name: a\n  user:\n    client-key-data: c2VjcmV0\n', 4],
      ['/etc/d.json', '{"auths":{"registry.example.com":{"auth":"dXNlcjpzZWNyZXQ="}}}', 1],
      ['/etc/e.toml', '[plugins]\n  password = "hunter2"\n', 2],
      ['/etc/f.conf', '[Service]\nEnvironment=HTTPS_PROXY=http://user:hunter2@proxy.example.com\n', 2],
      ['/etc/g.der', `\0${key}`, null],
      ['/etc/h.bin', `\0kubeadm join --token ${TOKEN}\n`, null],
      ['/etc/i.bin', '\0password: hunter2\n', null],
      ['/etc/j.yaml', 'machine-password: hunter2\n', 1],
      ['/etc/k.env', 'DB_PASSWORD=hunter2\n', 1],
      ['/etc/shadow', 'core:$6$hunter2hunter2$abcdefgh:1:0:9:7:::\n', 1],
      ['/etc/l.ini', '[default]\nsecret_access_key = hunter2\n', 2],
      ['/etc/m.yaml', 'apiToken: hunter2\n', 1],
      ['/etc/n.sh', 'curl -H "Authorization: Bearer hunter2" https://example.com\n', 1],
    ];
    for (const [path, text, line] of secrets) {
      const [problem = '', ...others] = problemsOf(file(path, text));
      expect(problem).toContain(`USER_DATA_SECRET ${path}${line === null ? '' : `:${line}`}: the file contains`);
      expect(problem).not.toMatch(/hunter2|0123456789|c2Vj|dXNl|MHcC/);
      expect(others).toEqual([]);
    }
    expect(problemsOf(...secrets.map(([path, text]) => file(path, text)))).toHaveLength(secrets.length);
  });

  it('accepts a file that is named as allowed, and no other', () => {
    const entries = [file('/etc/a', 'password: x1\n'), file('/etc/b', 'password: x1\n')];
    const run =
      (...allowedSecrets: readonly string[]) =>
      () =>
        firstBoot({ entries, joinFile: JOIN_FILE, program: PROGRAM, proxy: NO_PROXY, allowedSecrets });
    expect(run('/etc/a')).toThrow('/etc/b:1: the file contains');
    expect(run('/etc/a', '/etc/b')().content.entries).toHaveLength(2);
    expect(run('/etc/a', '/etc/b', '/etc/c')).toThrow('--allow-secret /etc/c: the directory has no such file');
  });

  it('may have files that only name secrets', () => {
    const harmless = [
      'authentication:\n  webhook:\n    enabled: true\n  x509:\n    clientCAFile: /etc/kubernetes/pki/ca.crt\n',
      'KUBELET_KUBEADM_ARGS="--node-ip=192.0.2.7 --pod-infra-container-image=registry.k8s.io/pause:3.10"\n',
      'users:\n- name: a\n  user:\n    tokenFile: /var/run/token\n',
      '-----BEGIN CERTIFICATE-----\nMHcCAQEEIIrYSSNQFaA2Hwf1\n',
      'https://proxy.example.com:3128/path@2\n',
      'curl -H "Authorization: Bearer $TOKEN" -u "$USER:$PASSWORD" https://example.com\n',
      'PASSWORD=$(cat /etc/secret)\nautomountServiceAccountToken: false\nsecretName: a\nDB_PASSWORD=${X}\n',
      'authentication:\n  tokenFile: /etc/token\ndocker run -u 1000:1000 image\n',
    ];
    expect(problemsOf(...harmless.map((text, i) => file(`/etc/${i}`, text)))).toEqual([]);
  });

  it('omits the bootstrap kubeconfig, which join creates', () => {
    const bootstrap = file('/etc/kubernetes/bootstrap-kubelet.conf', `token: ${TOKEN}\n`);
    const { content, omitted } = firstBoot({
      entries: [bootstrap, file('/etc/a', 'a')],
      joinFile: JOIN_FILE,
      allowedSecrets: [],
      program: PROGRAM,
      proxy: NO_PROXY,
    });
    expect(content.entries.map(({ path }) => path)).toEqual(['/etc/a']);
    expect(omitted).toBe('/etc/kubernetes/bootstrap-kubelet.conf');
  });

  it('refuses files with which the unit would not run, or that it would overwrite', () => {
    const refused = problemsOf(file('/etc/kubernetes/kubelet.conf', ''), file('/etc/systemd/system/kubeletadm-join.service', ''));
    expect(refused.map((problem) => problem.split(':')[0])).toEqual([
      'USER_DATA_UNUSABLE /etc/kubernetes/kubelet.conf',
      'USER_DATA_UNUSABLE /etc/systemd/system/kubeletadm-join.service',
    ]);
  });

  it('has the directories that would differ on the host, but never those of the system', () => {
    const entries = [
      directory('/etc', 0o700),
      directory('/etc/kubernetes'),
      file('/etc/kubernetes/a', ''),
      directory('/opt/empty'),
      directory('/var/lib/kubelet', 0o700),
      file('/var/lib/kubelet/b', ''),
    ];
    const { content } = firstBoot({ entries, joinFile: JOIN_FILE, program: PROGRAM, allowedSecrets: [], proxy: NO_PROXY });
    expect(content.entries.filter(({ kind }) => kind === 'directory').map(({ path }) => path)).toEqual(['/opt/empty', '/var/lib/kubelet']);
  });
});

describe('the join file', () => {
  const unitOf = (text: string, caPem: string | null = null) =>
    firstBoot({ entries: [], joinFile: parseJoinFile(text, caPem), program: PROGRAM, allowedSecrets: [], proxy: NO_PROXY }).content;

  it('is fetched by https into memory, with the words of systemd', () => {
    const { unit, entries } = unitOf('https://config.example.com/a%20b?n=$HOME#x', '-----BEGIN CERTIFICATE-----\n');
    expect(unit.text).toContain(' --proto =https ');
    expect(unit.text).toContain(' --cacert /etc/kubeletadm/join-file-ca.crt --output /run/kubeletadm-join/join.yaml ');
    expect(unit.text).toContain(' "https://config.example.com/a%%20b?n=$$HOME"\n');
    expect(unit.text).toContain('\nRuntimeDirectoryMode=0700\n');
    expect(unit.text).toContain(`\nExecStart=${PROGRAM} join --config /run/kubeletadm-join/join.yaml\n`);
    expect(unit.text).toContain('\nConditionPathExists=!/var/lib/kubeletadm-join/joined\n');
    expect(unit.text).toContain('\nStateDirectory=kubeletadm-join\n');
    expect(unit.text).toContain('\nExecStartPost=/bin/touch /var/lib/kubeletadm-join/joined\n');
    expect(entries.map(({ path }) => path)).toEqual(['/etc/kubeletadm/join-file-ca.crt']);
  });

  it('can be a file that the host gets in another way', () => {
    const { unit } = unitOf('/run/secrets/join.yaml');
    expect(unit.text).toContain(`\nExecStart=${PROGRAM} join --config /run/secrets/join.yaml\n`);
    expect(unit.text).not.toContain('curl');
  });

  it.each([
    ['http://config.example.com/join.yaml', null, 'USAGE'],
    ['https://', null, 'USAGE'],
    ['join.yaml', null, 'USAGE'],
    ['/run/join file', null, 'USAGE'],
    ['/run/../etc/join\n', null, 'USAGE'],
    ['/run/join.yaml', '-----BEGIN CERTIFICATE-----\n', 'USAGE'],
    ['https://config.example.com/join.yaml', 'no certificate', 'USAGE'],
    ['https://user:word@config.example.com/join.yaml', null, 'USER_DATA_SECRET'],
    ['https://config.example.com/join.yaml?X-Amz-Signature=a', null, 'USER_DATA_SECRET'],
    ['https://config.example.com/join.yaml?sig=a', null, 'USER_DATA_SECRET'],
  ])('is refused: %s', (text, caPem, code) => {
    let error: unknown;
    try {
      parseJoinFile(text, caPem);
    } catch (thrown) {
      error = thrown;
    }
    expect(isAppError(error, code)).toBe(true);
    expect(String(error)).not.toContain('user:word');
  });
});

describe('the proxy', () => {
  const httpsProxy = 'http://proxy.example.com:3128/a%20b';
  const noProxy = 'localhost,10.0.0.0/8,.svc,[::1],fd00::/8';

  it('is given to the runtime, the kubelet and join, in drop-ins', () => {
    const proxy = hostProxy({ httpsProxy, noProxy });
    const { content } = firstBoot({ entries: [], joinFile: JOIN_FILE, program: PROGRAM, allowedSecrets: [], proxy });
    const lines = `Environment="HTTPS_PROXY=http://proxy.example.com:3128/a%%20b"\nEnvironment="NO_PROXY=${noProxy}"\n`;
    expect(content.entries.map((entry) => (entry.kind === 'file' ? `${entry.path}\n${entry.content}` : ''))).toEqual(
      ['containerd', 'crio', 'kubelet'].map(
        (unit) => `/etc/systemd/system/${unit}.service.d/http-proxy.conf\n# Written by kubeletadm config user-data.\n[Service]\n${lines}`,
      ),
    );
    expect(content.unit.text).toContain(lines);
    expect(content.restart).toEqual(['containerd.service', 'crio.service']);
  });

  it.each([
    [{ httpsProxy }, 'USAGE'],
    [{ noProxy }, 'USAGE'],
    [{ httpsProxy, noProxy: 'a, b' }, 'USAGE'],
    [{ httpsProxy, noProxy: '' }, 'USAGE'],
    [{ httpsProxy: 'proxy.example.com:3128', noProxy }, 'USAGE'],
    [{ httpProxy: 'http://proxy.example.com/"\nUser=', noProxy }, 'USAGE'],
    [{ httpProxy: 'http://user:hunter2@proxy.example.com', noProxy }, 'USER_DATA_SECRET'],
  ])('is refused: %o', (options, code) => {
    let error: unknown;
    try {
      hostProxy(options);
    } catch (thrown) {
      error = thrown;
    }
    expect(isAppError(error, code)).toBe(true);
    expect(String(error)).not.toContain('hunter2');
  });
});
