import { describe, expect, it } from 'vitest';
import type { JoinOptions } from '../../../../src/kubeadm/workflows/join.ts';
import { regular } from '../../../support/host-to-join.ts';
import { clock, host, join, planJoin, refusalsOfJoin, replaceHost, useJoinWorld } from '../../../support/join-world.ts';
import { withRun } from '../../../support/with-run.ts';

useJoinWorld();

const withFlags = (flags: Readonly<Record<string, string>>): Partial<JoinOptions> => ({
  nodeRegistration: { kubeletExtraArgs: Object.entries(flags).map(([name, value]) => ({ name, value })) },
});

describe('a host without a node is refused', () => {
  it.each<[string, string, string]>([
    [
      'resolvConf',
      'resolvConf: /etc/kubernetes/resolv.conf',
      'resolvConf /etc/kubernetes/resolv.conf does not exist on the host: no sandbox of a new pod could be created',
    ],
    [
      'a serving certificate',
      'tlsCertFile: /pki/a.crt\ntlsPrivateKeyFile: /pki/a.key',
      'tlsCertFile /pki/a.crt does not exist on the host: the kubelet would exit',
    ],
    [
      'a CA for clients',
      'authentication: {x509: {clientCAFile: /pki/other.crt}}',
      'authentication.x509.clientCAFile /pki/other.crt does not exist on the host: the kubelet would exit',
    ],
  ])('if a file does not exist: %s', async (_, fields, message) => {
    host.files.set('/pki/a.key', regular('key'));
    expect(await refusalsOfJoin(fields)).toEqual([`ConfigOnHost: preflight: ${message}`]);
    expect(host.performed).toEqual([]);
  });

  it('if the flag for a field names a file that does not exist', async () =>
    expect(await refusalsOfJoin('maxPods: 50', withFlags({ 'resolv-conf': '/no/such' }))).toEqual([
      'ConfigOnHost: preflight: resolvConf /no/such does not exist on the host: no sandbox of a new pod could be created',
    ]));

  it('and can be joined by ignoring the check', async () => {
    const { warnings } = await planJoin('resolvConf: /no/such', withRun({ ignorePreflightErrors: ['ConfigOnHost'] }));
    expect(warnings.map(({ code }) => code)).toContain('ConfigOnHost');
  });
});

describe('a host without a node is accepted', () => {
  it('with existing files, and with the CA that join writes', async () => {
    host.files.set('/etc/kubernetes/resolv.conf', regular('nameserver 10.0.0.1\n'));
    expect(
      await refusalsOfJoin('resolvConf: /etc/kubernetes/resolv.conf\nauthentication: {x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}}'),
    ).toEqual([]);
  });

  it('without a further round trip if no field depends on the host', async () => {
    const trips = async (fields: string): Promise<number> => {
      const before = host.roundTrips;
      await planJoin(fields);
      return host.roundTrips - before;
    };
    host.files.set('/etc/kubernetes/resolv.conf', regular(''));
    const plain = await trips('maxPods: 50');
    expect(await trips('maxPods: 51')).toBe(plain);
    expect(await trips('resolvConf: /etc/kubernetes/resolv.conf')).toBeGreaterThan(plain);
  });
});

describe('the clock of a host without a node', () => {
  it.each<[string, number, readonly string[]]>([
    [
      'two days behind',
      -2 * 86_400,
      ['HostClock: preflight: the clock of the host is 2 days behind the local clock: new certificates would not be valid on the host yet'],
    ],
    ['four minutes behind', -240, []],
    ['two hours ahead', 7200, []],
  ])('that is %s', async (_, seconds, expected) => {
    const date = () => ({ stdout: `${Math.floor(clock.now().getTime() / 1000) + seconds}\n` });
    replaceHost({ date });
    expect(await refusalsOfJoin('maxPods: 50')).toEqual(expected);
  });
});

describe('a corrupt state file of a manager', () => {
  const CPU = '/var/lib/kubelet/cpu_manager_state';
  const MESSAGE = `KubeletState: preflight: the state file ${CPU} is corrupt: the kubelet would exit at its next start`;
  const edited = '{"policyName":"none","defaultCpuSet":"0-3","checksum":1353318690}';

  it('is found before a new node starts, and before a change restarts a node', async () => {
    host.files.set(CPU, regular(edited));
    expect(await refusalsOfJoin('maxPods: 50')).toEqual([MESSAGE]);
    host.files.delete(CPU);
    await join('maxPods: 50');
    host.files.set(CPU, regular(edited));
    expect(await refusalsOfJoin('maxPods: 51')).toEqual([MESSAGE]);
  });

  it('is found if systemd restarted the kubelet, which may be active between two crashes', async () => {
    await join('maxPods: 50');
    host.files.set(CPU, regular(edited));
    const unit = host.units.get('kubelet');
    if (unit !== undefined) unit.state = { ...unit.state, restarts: 1 };
    expect(await refusalsOfJoin('maxPods: 50')).toEqual([MESSAGE]);
  });

  it('is no finding if the plan removes the file, or the file is valid', async () => {
    host.files.set(CPU, regular(edited));
    expect(await refusalsOfJoin('cpuManagerPolicy: static\nkubeReserved: {cpu: 500m}')).toEqual([]);
    host.files.set(CPU, regular('{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'));
    expect(await refusalsOfJoin('maxPods: 50')).toEqual([]);
  });
});

describe('a credential provider for images', () => {
  const flags = {
    'image-credential-provider-config': '/etc/kubernetes/providers.yaml',
    'image-credential-provider-bin-dir': '/opt/providers',
  };
  const config =
    'apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- {name: ecr, matchImages: ["*.example"]}\n';
  const program = (mode: number): void => {
    host.files.set('/opt/providers', { type: 'directory', mode: 0o755, owner: 'root:root' });
    host.files.set('/opt/providers/ecr', { ...regular('#!/bin/sh\n'), mode });
  };
  const NO_DIR = '--image-credential-provider-bin-dir: the directory /opt/providers does not exist on the host: the kubelet would exit';

  it.each<[string, () => void, string | null]>([
    ['nothing', () => {}, NO_DIR],
    [
      'the program alone',
      () => program(0o755),
      '--image-credential-provider-config: /etc/kubernetes/providers.yaml does not exist on the host: the kubelet would exit',
    ],
    [
      'a program that is not executable',
      () => {
        program(0o644);
        host.files.set('/etc/kubernetes/providers.yaml', regular(config));
      },
      '--image-credential-provider-bin-dir: the program /opt/providers/ecr, which /etc/kubernetes/providers.yaml names, is not executable: the kubelet would exit',
    ],
    [
      'a configuration without providers',
      () => {
        program(0o755);
        host.files.set('/etc/kubernetes/providers.yaml', regular('providers: []\n'));
      },
      '--image-credential-provider-config: /etc/kubernetes/providers.yaml names no provider: the kubelet would exit',
    ],
    [
      'all files',
      () => {
        program(0o755);
        host.files.set('/etc/kubernetes/providers.yaml', regular(config));
      },
      null,
    ],
  ])('is looked for on a new host with %s', async (_, prepare, message) => {
    prepare();
    expect(await refusalsOfJoin('maxPods: 50', withFlags(flags))).toEqual(message === null ? [] : [`ConfigOnHost: preflight: ${message}`]);
  });

  it('in a directory of configurations needs all programs', async () => {
    program(0o755);
    host.files.set('/etc/providers', { type: 'directory', mode: 0o755, owner: 'root:root' });
    host.files.set('/etc/providers/a.yaml', regular(config));
    host.files.set('/etc/providers/b.json', regular('{"providers": [{"name": "gcr"}]}'));
    host.files.set('/etc/providers/ignored.txt', regular('providers: [{name: other}]'));
    const [message] = await refusalsOfJoin('maxPods: 50', withFlags({ ...flags, 'image-credential-provider-config': '/etc/providers' }));
    expect(message).toContain('the program /opt/providers/gcr, which /etc/providers names, does not exist on the host');
  });

  it('needs both flags', async () => {
    const [message] = await refusalsOfJoin(
      'maxPods: 50',
      withFlags({ 'image-credential-provider-config': '/etc/kubernetes/providers.yaml' }),
    );
    expect(message).toContain('--image-credential-provider-bin-dir is not set, but --image-credential-provider-config is');
  });

  it('is looked for on a node when a change sets the flags', async () => {
    await join('maxPods: 50');
    expect(await refusalsOfJoin('maxPods: 50', withFlags(flags))).toEqual([`PODS_AT_RISK: ${NO_DIR}`]);
  });
});
