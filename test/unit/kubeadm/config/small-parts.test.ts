import { describe, expect, it } from 'vitest';
import { parseKubernetesVersion } from '../../../../src/base/kubernetes-version.ts';
import { documentTexts } from '../../../../src/codec/document-text.ts';
import { formatFieldPath, parentPath, showFieldPath } from '../../../../src/codec/field-path.ts';
import { loadConfig } from '../../../../src/kubeadm/config/load.ts';
import { apiServerEndpoint, controlPlaneEndpoint, joinHostPort, splitHostPort } from '../../../../src/kubeadm/config/rules.ts';
import { runCommand } from '../../../support/run-cli.ts';

describe('field paths', () => {
  it.each([
    [[], ''],
    [['a'], 'a'],
    [['a', 'b', 0, 'c'], 'a.b[0].c'],
    [['a', 'x.y', 'node-ip'], 'a["x.y"].node-ip'],
    [['', '"'], '[""]["\\""]'],
  ])('%j', (steps, expected) => {
    expect(formatFieldPath(steps)).toBe(expected);
  });

  it.each([
    ['a.b[0].c', 'a.b[0]'],
    ['a.b[0]', 'a.b'],
    ['a["x.y"]', 'a'],
    ['a["x[\\"]"].b', 'a["x[\\"]"]'],
    ['a', ''],
    ['', ''],
  ])('parent of %s is %s', (path, expected) => {
    expect(parentPath(path)).toBe(expected);
  });

  it('masks secrets', () => {
    expect(showFieldPath('a["abcdef.0123456789abcdef"]')).toBe('a["[secret]"]');
  });
});

describe('parseKubernetesVersion', () => {
  it.each([
    ['v1.36.2', { kind: 'release', version: 'v1.36.2', ci: false }],
    ['1.36.2', { kind: 'release', version: 'v1.36.2', ci: false }],
    ['ci/v1.36.0-alpha.1+x', { kind: 'release', version: 'v1.36.0-alpha.1+x', ci: true }],
    ['release/v1.36.0', { kind: 'release', version: 'v1.36.0', ci: false }],
    ['stable-1', { kind: 'label', label: 'stable-1', ci: false }],
    ['release/stable-1.36', { kind: 'label', label: 'stable-1.36', ci: false }],
    ['ci/latest', { kind: 'label', label: 'latest', ci: true }],
    ['', null],
    ['v1.36', null],
    ['stable-1.36.2', null],
    ['ci/', null],
  ])('%s', (text, expected) => {
    expect(parseKubernetesVersion(text)).toEqual(expected);
  });
});

describe('hosts and ports', () => {
  it.each([
    ['a:1', { host: 'a', port: '1' }],
    ['[::1]:6443', { host: '::1', port: '6443' }],
    ['a:', { host: 'a', port: '' }],
    [':1', { host: '', port: '1' }],
    ['a', null],
    ['::1', null],
    ['[::1]', null],
    ['[::1]1', null],
    ['a:1:2', null],
    ['a]:1', null],
  ])('%s', (text, expected) => {
    expect(splitHostPort(text)).toEqual(expected);
  });

  it('adds brackets to IPv6 addresses', () => {
    expect([joinHostPort('fd00::1', 1), joinHostPort('a', '2')]).toEqual(['[fd00::1]:1', 'a:2']);
  });
});

describe('documentTexts', () => {
  it.each([
    ['one', 'a: 1\n', ['a: 1\n']],
    ['comments', '# top\n---\n# c1\na: 1\n# after\n---\n# c2\nb: 2\n', ['# top\n# c1\na: 1\n# after\n', '# c2\nb: 2\n']],
    ['dashes in a block scalar', '---\na: |\n  x\n  --- y\n...\n', ['a: |\n  x\n  --- y\n']],
    ['text after the marker', '--- # note\na: 1\n--- {b: 2}\n', ['# note\na: 1\n', '{b: 2}\n']],
    ['empty documents', '---\n---\na: 1\n', ['', 'a: 1\n']],
    ['a directive', '%YAML 1.1\n---\na: 1\n', ['a: 1\n']],
    ['nothing', '', []],
  ])('%s', (_, text, expected) => {
    expect(documentTexts(text)).toEqual(expected);
  });
});

describe('taints together with the flag register-with-taints', () => {
  const join = (body: string) => {
    const text = `apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\nnodeRegistration: ${body}\n`;
    return loadConfig(text, 'f.yaml', { kinds: ['JoinConfiguration'] }).problems.filter(({ code }) => code === 'CONFIG_TAINTS_REPLACED');
  };
  const flag = 'kubeletExtraArgs: [{name: register-with-taints, value: "b=c:NoSchedule"}]';

  it('are reported as replaced by the flag, as a warning', () => {
    expect(join(`{taints: [{key: a, effect: NoSchedule}], ${flag}}`)).toMatchObject([
      {
        severity: 'warning',
        message: 'these taints are ignored: the kubelet registers only with the taints of its flag register-with-taints=b=c:NoSchedule',
      },
    ]);
  });

  it('are not reported without taints or without the flag', () => {
    expect([...join(`{taints: [], ${flag}}`), ...join('{taints: [{key: a, effect: NoSchedule}]}')]).toEqual([]);
  });
});

describe('errors of one list item', () => {
  const join = (body: string) => {
    const text = `apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n${body}\n`;
    const { problems } = loadConfig(text, 'f.yaml', { kinds: ['JoinConfiguration'] });
    return problems.flatMap(({ path, code }) => (/^nodeRegistration/.test(path ?? '') ? [`${path} ${code}`] : []));
  };

  it('are all reported once', () => {
    expect(join('nodeRegistration: {taints: [{key: "a b", effect: Never}]}')).toEqual([
      'nodeRegistration.taints[0].key CONFIG_INVALID_TAINT',
      'nodeRegistration.taints[0].effect CONFIG_INVALID_VALUE',
    ]);
  });

  it('do not mark another item as a duplicate', () => {
    const taints = '[{key: a, effect: Never}, {key: a, effect: NoSchedule}, {key: a, effect: NoExecute}]';
    expect(join(`nodeRegistration: {taints: ${taints}}`)).toEqual(['nodeRegistration.taints[0].effect CONFIG_INVALID_VALUE']);
  });

  it('are reported once when a required string has the wrong type', () => {
    expect(join('nodeRegistration: {taints: [{key: 3, effect: NoSchedule}]}')).toEqual([
      'nodeRegistration.taints[0].key CONFIG_WRONG_TYPE',
    ]);
  });
});

describe('a host and port with a scheme', () => {
  it.each(['https://x', 'HTTPS://x:6443', 'tcp://10.0.0.1:6443'])('%s: the message names the scheme', (text) => {
    for (const rule of [apiServerEndpoint, controlPlaneEndpoint])
      expect(rule(text)).toMatchObject({
        code: 'CONFIG_INVALID_ENDPOINT',
        hint: expect.stringMatching(/^Remove the scheme: (x|x:6443|10\.0\.0\.1:6443)$/),
      });
  });
});

describe('migrateConfig', () => {
  it.each([['maxPodz: 3'], ['maxPods: many']])('rejects a KubeletConfiguration with %s', async (field) => {
    const { code, stdout, stderr } = await runCommand(['config', 'migrate', '--old-config', '-'], {
      stdin: `apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\n---\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${field}\n`,
    });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^standard input:6:\d+ maxPod[sz]: /m);
  });
});
